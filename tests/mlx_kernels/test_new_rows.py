"""One launch rotates, quantizes and writes new rows as MLX's own operations do."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from emulated import Emulated

from mlx_kernels.attention import plain_path
from mlx_kernels.emulator import apple_quantized
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.new_rows import serves_rotation, write_new_rows
from mlx_kernels.open_block import OPEN_ROWS
from mlx_kernels.step_inputs import parted

pytestmark = pytest.mark.usefixtures("compiler_here")

HEADS, KV_HEADS = 4, 2
# Rounding of the dtype at the size of the values, and a code step of the rounding's difference.
TOLERANCE = {mx.float32: 3e-5, mx.float16: 4e-3, mx.bfloat16: 3.2e-2}
dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def new_tokens(d, dtype, length=2, batch=1):
    """Vectors [B, L, heads, D] as a slice of a wider array, so that strides matter."""
    mx.random.seed(d + length)
    wide = mx.random.normal((batch, length, HEADS + 2 * KV_HEADS, d + 8)).astype(dtype)
    return wide[..., :d]


def close(a, b, tolerance):
    return float(mx.abs(a.astype(mx.float32) - b.astype(mx.float32)).max()) <= tolerance


def both(by_head, make_cache, rope, launch, opened=0, offset=37):
    """(queries, cache) of the launch, and what plain operations make; after `offset` rows, of which
    the launch finds the last `opened` in an open block."""
    ours, plain = make_cache(), make_cache()
    d, dtype = by_head.shape[-1], by_head.dtype
    before = mx.random.normal((2, by_head.shape[0], KV_HEADS, offset, d)).astype(dtype)
    plain.append(before)
    ours.append(before[..., : offset - opened, :])
    if opened:
        ours.keep_open(parted(*plain.rows(), opened)[2])
    queries = write_new_rows(
        by_head, ours, heads=HEADS, kv_heads=KV_HEADS, rope=rope, launch=launch
    )
    rotated = rope(by_head[:, :, : HEADS + KV_HEADS].swapaxes(1, 2), offset=offset)
    plain.append(mx.stack([rotated[:, HEADS:], by_head[:, :, HEADS + KV_HEADS :].swapaxes(1, 2)]))
    return (queries, ours), (rotated[:, :HEADS], plain)


@dtypes
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(
    ("traditional", "length", "opened"),
    [(False, 1, 15), (False, 4, 1), (True, 8, 0), (True, 2, 15)],
)
def test_a_plain_cache_gets_what_mlx_rotates(d, dtype, traditional, length, opened):
    rope = nn.RoPE(d, traditional=traditional, base=100_000, scale=0.5)
    launch = Emulated(strict=dtype == mx.float16 and not traditional)
    by_head = new_tokens(d, dtype, length, batch=2)
    (queries, ours), (expected, plain) = both(by_head, KVCache, rope, launch, opened)
    assert queries.dtype == dtype
    assert close(queries, expected, TOLERANCE[dtype])
    assert ours.offset == plain.offset
    for mine, theirs in zip(ours.keys_and_values(), plain.keys_and_values(), strict=True):
        assert mine.dtype == dtype
        assert close(mine, theirs, TOLERANCE[dtype])
    # Values are not rotated: bit for bit.
    assert mx.array_equal(ours.keys_and_values()[1], plain.keys_and_values()[1])
    assert [name for name, _ in launch.reports] == ["write_plain"]


@dtypes
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize(
    ("group", "bits", "length", "opened"),
    [(64, 8, 1, 15), (32, 8, 4, 1), (64, 4, 8, 0), (32, 4, 2, 15)],
)
def test_a_quantized_cache_gets_what_mlx_rotates_and_quantizes(
    d, group, bits, length, opened, dtype
):
    rope = nn.RoPE(d, base=100_000)
    launch = Emulated(strict=dtype == mx.bfloat16)
    by_head = new_tokens(d, dtype, length, batch=2)
    (queries, ours), (expected, plain) = both(
        by_head, lambda: QuantizedKVCache(group, bits), rope, launch, opened
    )
    assert close(queries, expected, TOLERANCE[dtype])
    for mine, theirs in zip(ours.rows(), plain.rows(), strict=True):
        step = float(mx.abs(theirs.scales.astype(mx.float32)).max())
        assert mine.dtype == dtype
        assert close(mine.dequantized(), theirs.dequantized(), TOLERANCE[dtype] + step)
        # A code differs only where rounding decides.
        codes = [np.array(r.words.view(mx.uint8)).astype(int) for r in (mine, theirs)]
        assert (codes[0] != codes[1]).mean() < (0.01 if dtype == mx.float32 else 0.1)
    assert [name for name, _ in launch.reports] == ["write_affine"]


@dtypes
@pytest.mark.parametrize(("group", "bits"), [(64, 8), (32, 4)])
def test_rows_are_quantized_as_apples_kernel_quantizes_them(group, bits, dtype):
    by_head = new_tokens(128, dtype, length=3)
    # Groups of one sign, of zeros, and of one value.
    values = mx.abs(by_head[:, :, HEADS + KV_HEADS :])
    values[:, 0] = -values[:, 0]
    values[:, 1, 0] = 0
    values[:, 2, 0] = 3
    by_head[:, :, HEADS + KV_HEADS :] = values
    cache = QuantizedKVCache(group, bits)
    write_new_rows(
        by_head, cache, heads=HEADS, kv_heads=KV_HEADS, rope=nn.RoPE(128), launch=Emulated()
    )
    expected, _ = apple_quantized.affine_quantize(
        values.swapaxes(1, 2), group_size=group, bits=bits
    )
    for mine, theirs in zip(cache.keys_and_values()[1], expected, strict=True):
        assert mx.array_equal(mine, theirs)


KINDS = {
    "plain": (KVCache, mx.bfloat16, 64),
    "8 bits": (lambda: QuantizedKVCache(32, 8), mx.float16, 128),
    "4 bits": (lambda: QuantizedKVCache(64, 4), mx.float32, 64),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 4, 8])
@pytest.mark.parametrize("opened", [0, 1, 15])
def test_rows_go_after_those_of_the_open_block_which_is_closed_when_it_is_full(
    kind, length, opened
):
    make_cache, dtype, d = KINDS[kind]
    closed = mx.random.normal((2, 2, KV_HEADS, 5, d)).astype(dtype)
    parts = [new_tokens(d, dtype, opened, batch=2)] if opened else []
    parts += [new_tokens(d, dtype, length, batch=2), new_tokens(d, dtype, 1, batch=2)]
    ours, at_once = make_cache(), make_cache()
    for cache in (ours, at_once):
        cache.append(closed)
    orders = ("forward", "reverse", "shuffled")
    open_rows = 0
    for by_head in parts:
        before = ours.rows_and_block()[2]
        rest = {"heads": HEADS, "kv_heads": KV_HEADS, "rope": nn.RoPE(d)}
        launch = Emulated(orders=orders, garbage=77)
        queries = write_new_rows(by_head, ours, launch=launch, **rest)
        assert len(launch.reports) == 1
        assert mx.array_equal(queries, write_new_rows(by_head, at_once, launch=Emulated(), **rest))
        at_once.close()
        after = ours.rows_and_block()[2]
        fits = open_rows + by_head.shape[1] <= OPEN_ROWS
        open_rows = by_head.shape[1] + open_rows * fits
        assert after.rows == open_rows
        assert all((a[..., open_rows:, :] == 77).all() for a in after.arrays)
        if before and fits:
            for a, b in zip(before.used(), after.arrays, strict=True):
                assert mx.array_equal(a, b[..., : before.rows, :])
    assert ours.offset == at_once.offset == 5 + opened + length + 1
    for mine, theirs in zip(ours.keys_and_values(), at_once.keys_and_values(), strict=True):
        triples = (mine, theirs) if isinstance(mine, tuple) else ([mine], [theirs])
        assert all(mx.array_equal(a, b) for a, b in zip(*triples, strict=True))


def test_a_block_has_no_room_for_more_rows_than_it_has():
    by_head = new_tokens(64, mx.float32, OPEN_ROWS + 1)
    with pytest.raises(ValueError, match="17 rows do not fit"):
        write_new_rows(
            by_head, KVCache(), heads=HEADS, kv_heads=KV_HEADS, rope=nn.RoPE(64), launch=Emulated()
        )


@pytest.mark.parametrize(
    ("rope", "d", "dtype", "served"),
    [
        (nn.RoPE(64), 64, mx.float16, True),
        (nn.RoPE(32), 64, mx.float16, False),
        (nn.RoPE(80), 80, mx.float16, False),
        (nn.RoPE(64), 64, mx.int32, False),
        (lambda x, offset: x, 64, mx.float16, False),
    ],
)
def test_rotations_that_the_launch_does_not_do_are_named(rope, d, dtype, served):
    assert serves_rotation(rope, d, dtype) == served


def test_the_plain_path_attends_over_what_it_wrote():
    by_head = new_tokens(64, mx.float32, length=1)
    cache = KVCache()
    out = plain_path(by_head, cache, heads=HEADS, kv_heads=KV_HEADS, rope=nn.RoPE(64), scale=0.125)
    assert cache.offset == 1
    assert mx.array_equal(out, mx.repeat(by_head[:, :, -KV_HEADS:].swapaxes(1, 2), 2, axis=1))
