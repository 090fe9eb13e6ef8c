"""The decode kernels, their text run in the emulator: exact, and no byte of K or V loaded twice."""

from __future__ import annotations

import mlx.core as mx
import pytest
from emulated import Emulated

from mlx_kernels.affine import AffineRows
from mlx_kernels.decode_attention import (
    MOST_PARTS,
    SHORTEST_PART,
    decode_attention,
    parts_for,
    serves,
)
from mlx_kernels.emulator import apple
from mlx_kernels.float64_attention import largest_error
from mlx_kernels.open_block import OPEN_ROWS, OpenBlock
from mlx_kernels.plain_attention import plain_attention
from mlx_kernels.step_inputs import parted

pytestmark = pytest.mark.usefixtures("compiler_here")

# Half a unit in the last place of an output below 1; sums are in float32.
ROUNDING = {mx.float32: 2e-6, mx.float16: 2**-11, mx.bfloat16: 2**-8}
F32, F16, BF16 = ROUNDING


def step(n, rows=1, group=8, kv_heads=1, d=128, dtype=F16, bits=16, group_size=64, batch=1):
    """Queries, and keys and values as views of a longer buffer."""
    mx.random.seed(n + 7 * rows + bits)
    queries = mx.random.normal((batch, rows, kv_heads * group, d)).astype(dtype).swapaxes(1, 2)
    buffer = mx.random.normal((2, batch, kv_heads, n + 19, d)).astype(dtype)
    if bits == 16:
        return queries, buffer[0, :, :, :n], buffer[1, :, :, :n]
    whole = (AffineRows(*mx.quantize(b, group_size, bits), group_size, bits) for b in buffer)
    keys, values = (rows.rows(0, n) for rows in whole)
    return queries, keys, values


def with_block(keys, values, opened):
    """The last rows in an open block, with what is not to be read after them."""
    *closed, block = parted(keys, values, opened)
    if block is None:
        return closed
    used = mx.arange(OPEN_ROWS)[:, None] < opened
    unread = {mx.uint32: mx.array(2**32 - 1, mx.uint32)}
    arrays = (
        mx.where(used, a, unread.get(a.dtype, mx.array(mx.nan, a.dtype))) for a in block.arrays
    )
    return *closed, OpenBlock(tuple(arrays), opened)


def run(inputs, parts=1, scale=None, opened=0, **options):
    launch = Emulated(**options)
    scale = scale or inputs[0].shape[-1] ** -0.5
    rows = with_block(*inputs[1:], opened)
    out = decode_attention(inputs[0], *rows, scale=scale, parts=parts, launch=launch)
    assert out.shape == inputs[0].shape
    assert out.dtype == inputs[0].dtype
    error = largest_error(out, *inputs, scale=scale)
    return out, error / max(1.0, float(mx.abs(out).max())), launch.reports


SHAPES = [
    # n, rows, group, kv_heads, d, batch, parts, opened
    (1, 1, 8, 2, 128, 1, 1, 0),
    (8, 8, 8, 1, 128, 1, 1, 7),
    (77, 1, 1, 3, 64, 2, 1, 1),
    (133, 5, 2, 2, 64, 1, 2, 5),
    (61, 1, 3, 3, 64, 2, 1, 15),
    (150, 8, 3, 1, 64, 1, 2, 16),
    (101, 3, 4, 2, 128, 2, 1, 3),
    (203, 1, 8, 2, 128, 1, 3, 1),
    (90, 8, 8, 1, 64, 1, 1, 9),
    (67, 4, 16, 1, 128, 1, 1, 4),
    (35, 8, 16, 1, 64, 1, 1, 15),
]
CACHES = [(F32, 16, 64), (F16, 16, 64), (BF16, 16, 64)]
CACHES += [(F16, 8, 64), (BF16, 8, 32), (F32, 4, 32), (F16, 4, 64)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cache", [0, 1], ids=["plain", "quantized"])
def test_any_group_head_size_batch_and_length(shape, cache):
    n, rows, group, kv_heads, d, batch, parts, opened = shape
    which = SHAPES.index(shape)
    dtype, bits, group_size = CACHES[which % 3] if cache == 0 else CACHES[3 + which % 4]
    inputs = step(n, rows, group, kv_heads, d, dtype, bits, group_size, batch)
    out, error, reports = run(inputs, parts, opened=opened)
    assert error <= ROUNDING[dtype]
    assert [name for name, _ in reports][1:] == (["join_parts"] if parts > 1 else [])
    # Where a row is makes no difference: bit for bit.
    assert mx.array_equal(out, run(inputs, parts)[0])


@pytest.mark.parametrize(("dtype", "bits", "group_size"), CACHES)
@pytest.mark.parametrize(("d", "opened"), [(64, 0), (64, 16), (128, 9)])
def test_any_cache_passes_the_strict_check_and_depends_on_no_order(
    dtype, bits, group_size, d, opened
):
    inputs = step(70, 3, 4, 1, d, dtype, bits, group_size)
    orders = ("forward", "reverse", "shuffled")
    strict = (d, opened) != (64, 16)
    _, error, _ = run(inputs, parts=2, opened=opened, orders=orders, strict=strict)
    assert error <= ROUNDING[dtype]


@pytest.mark.parametrize("rows", [1, 4, 8])
@pytest.mark.parametrize("bits", [16, 8, 4])
@pytest.mark.parametrize("opened", [0, 13])
def test_every_byte_of_keys_and_values_is_loaded_once_for_a_group(bits, rows, opened):
    inputs = step(1031, rows, bits=bits)
    _, error, reports = run(inputs, parts=parts_for(1031, 1, cores=2), opened=opened)
    assert error <= ROUNDING[F16]
    name, report = reports[0]
    cache = [t for n, t in report.traffic.items() if n.startswith(("key", "value", "open_"))]
    caches = [t for t in cache if t.buffer_bytes > 64]  # without shapes and strides
    assert len(caches) == (3 if bits == 16 else 8)
    floor = inputs[1].nbytes + inputs[2].nbytes
    assert sum(t.loaded for t in caches) == floor
    assert not any(t.stored for t in caches)
    # Lanes that skip a load at the end of a part put their later ones beside others' in the count.
    assert sum(t.scattered_loads for t in caches) < 0.05 * sum(t.simdgroup_loads for t in caches)
    assert name == ("attend_plain" if bits == 16 else "attend_affine")


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_the_error_is_no_larger_than_that_of_mlxs_kernels(dtype):
    inputs = step(517, dtype=dtype)
    out, _, _ = run(inputs, parts=4)
    error = largest_error(out, *inputs, scale=128**-0.5)
    for kernel, options in (
        (apple.sdpa_vector, {}),
        (apple.sdpa_vector_2pass, {"blocks": 32, "gqa": True}),
    ):
        theirs, _ = kernel(*(mx.contiguous(x) for x in inputs), 128**-0.5, **options)
        # Both round a float32 result once at best, and then differ in the last digit at most.
        assert error <= largest_error(theirs, *inputs, scale=128**-0.5) * (1 + 1e-3)


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_extremes(bits):
    queries, keys, values = step(131, 2, 8, 1, 128, F32, bits)
    _, error, _ = run((queries * 0, keys, values), parts=2)  # all scores equal
    assert error <= ROUNDING[F32]
    zeros = mx.zeros((1, 1, 131, 128))
    zeros = zeros if bits == 16 else AffineRows(*mx.quantize(zeros, 64, bits), 64, bits)
    _, error, _ = run((queries, zeros, values), parts=2)
    assert error <= ROUNDING[F32]
    out, error, _ = run((queries, keys, zeros), parts=2)
    assert error == 0
    assert not out.any()


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_of_ten_thousand(sign):
    # Powers of two, so that a score is exact and the largest ones are close to each other.
    queries = mx.full((1, 8, 1, 64), sign * 128.0)
    steps = mx.arange(131).reshape(1, 1, 131, 1) % 5
    keys = mx.contiguous(mx.repeat(1.25 - steps * 2.0**-14, 64, axis=-1))
    values = step(131, 1, 8, 1, 64, F32)[2]
    out, error, _ = run((queries, keys, values), parts=2, scale=1.0)
    assert mx.isfinite(out).all()
    assert error <= 1e-5


def test_all_weight_on_one_key_among_scores_of_ten_thousand():
    queries, _, values = step(100, 1, 8, 1, 64, F32)
    queries = mx.ones_like(queries)
    keys = mx.full((1, 1, 100, 64), -156.25)  # scores of -1e4
    keys[:, :, 37] = 156.25
    out, _, _ = run((queries, keys, values), scale=1.0)
    assert mx.array_equal(out, mx.broadcast_to(values[:, :, 37:38], out.shape))


@pytest.mark.parametrize("bits", [16, 4])
def test_the_plain_path_means_the_same(bits):
    inputs = step(157, 4, 4, 2, 64, F32, bits)
    out, _, _ = run(inputs, parts=2)
    plain = plain_attention(*inputs, scale=64**-0.5, causal=True)
    assert mx.allclose(out, plain, atol=2e-6)


def test_parts_give_every_core_work_and_are_never_short():
    assert parts_for(1, 2, 10) == parts_for(2 * SHORTEST_PART - 1, 2, 10) == 1
    assert parts_for(4096, 2, 10) == 20
    assert parts_for(1024, 2, 40) == 1024 // SHORTEST_PART
    assert parts_for(131_072, 1, 80) == MOST_PARTS
    assert parts_for(131_072, 64, 10) == 1


@pytest.mark.parametrize(
    ("shape", "kv_heads", "dtype", "served"),
    [
        ((1, 16, 1, 128), 2, F16, True),
        ((1, 9, 8, 64), 3, BF16, True),
        ((4, 16, 8, 128), 1, F32, True),
        ((1, 16, 9, 128), 2, F16, False),
        ((1, 16, 1, 80), 2, F16, False),
        ((1, 16, 1, 128), 3, F16, False),
        ((1, 32, 8, 128), 1, F16, False),
        ((1, 16, 1, 128), 2, mx.int32, False),
    ],
)
def test_shapes_that_are_served(shape, kv_heads, dtype, served):
    assert serves(shape, kv_heads, dtype) == served
