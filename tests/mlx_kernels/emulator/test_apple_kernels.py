"""Apple's own kernels, from the installed MLX wheel, in the emulator, against MLX on the CPU."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.base import quantized_scaled_dot_product_attention

from mlx_kernels.emulator import apple, apple_quantized, faults

D = 128
# Rounding of the output's type at the size of its values; all accumulate in float32.
TOLERANCE = {mx.float32: 1e-5, mx.float16: 1e-3, mx.bfloat16: 8e-3}
DTYPES = list(TOLERANCE)


def attention_inputs(dtype, rows=1, n=300, heads=16, kv_heads=2, batch=1):
    mx.random.seed(n + rows)
    q = mx.random.normal((batch, heads, rows, D)).astype(dtype)
    k = mx.random.normal((batch, kv_heads, n, D)).astype(dtype)
    v = mx.random.normal((batch, kv_heads, n, D)).astype(dtype)
    return q, k, v


def error(out, q, k, v, causal=False):
    """Largest difference from MLX's attention on the CPU, on the same inputs in float32."""
    wide = [x.astype(mx.float32) for x in (q, k, v)]
    mask = "causal" if causal else None
    expected = mx.fast.scaled_dot_product_attention(*wide, scale=D**-0.5, mask=mask)
    assert out.dtype == q.dtype
    return mx.abs(out.astype(mx.float32) - expected).max().item()


KERNELS = {
    "sdpa_vector": (apple.sdpa_vector, {}, 8.0),
    "sdpa_vector_2pass": (apple.sdpa_vector_2pass, {"blocks": 32}, 8.0),
    "sdpa_vector_2pass_gqa": (apple.sdpa_vector_2pass, {"blocks": 32, "gqa": True}, 2.0),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_apples_attention_agrees_with_mlx_and_reads_what_was_counted(name, dtype):
    run, options, ratio = KERNELS[name]
    q, k, v = attention_inputs(dtype)
    out, reports = run(q, k, v, D**-0.5, **options)
    assert error(out, q, k, v) < TOLERANCE[dtype]
    # shared/design/kernels.md: 8.00 and 2.00 times the floor with 8 query heads a KV head.
    for cache in ("keys", "values"):
        traffic = reports[0].traffic[cache]
        assert traffic.load_ratio == ratio
        assert traffic.simdgroup_loads > 0
        assert traffic.scattered_loads == 0
        assert traffic.stored == 0
    outputs = [name for name, traffic in reports[-1].traffic.items() if traffic.stored]
    assert outputs == ["out"]
    assert reports[-1].traffic["out"].stored == q.nbytes


@pytest.mark.parametrize("name", ["sdpa_vector", "sdpa_vector_2pass"])
def test_apples_attention_over_several_causal_rows(name):
    run, options, _ = KERNELS[name]
    q, k, v = attention_inputs(mx.float16, rows=3, n=77, heads=8, batch=2)
    out, _ = run(q, k, v, D**-0.5, causal=True, **options)
    assert error(out, q, k, v, causal=True) < TOLERANCE[mx.float16]


@pytest.mark.parametrize("order", ["reverse", "shuffled"])
@pytest.mark.parametrize("name", KERNELS)
def test_apples_attention_does_not_depend_on_the_order_of_lanes(name, order):
    run, options, _ = KERNELS[name]
    q, k, v = attention_inputs(mx.float16, n=130)
    forward, _ = run(q, k, v, D**-0.5, **options)
    other, _ = run(q, k, v, D**-0.5, order=order, seed=7, **options)
    assert mx.array_equal(forward, other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group_size", [32, 64])
def test_apples_affine_quantize_agrees_with_mlx(dtype, bits, group_size):
    mx.random.seed(bits + group_size)
    w = mx.random.normal((16, 128)).astype(dtype)
    w[3] = mx.zeros((128,), dtype)
    (packed, scales, biases), report = apple_quantized.affine_quantize(
        w, group_size=group_size, bits=bits
    )
    expected = mx.quantize(w, group_size=group_size, bits=bits)
    # A quotient midway between two integers: the kernel rounds it away from zero (metal::round),
    # the CPU to even (rint). With few digits such quotients occur.
    same = np.array(scales == expected[1]) & np.array(biases == expected[2])
    assert same.mean() > 0.95
    if dtype != mx.bfloat16:
        assert same.all()
    mine, theirs = (np.array(p.view(mx.uint8)).astype(np.int32) for p in (packed, expected[0]))
    if bits == 4:
        mine, theirs = (np.stack([p & 15, p >> 4], axis=-1) for p in (mine, theirs))
    codes = (mine - theirs).reshape(*same.shape, group_size)[same]
    assert np.abs(codes).max() <= 1
    assert np.count_nonzero(codes) <= (0 if dtype == mx.float32 else w.size // 64)
    assert report.traffic["w"].loaded == w.nbytes
    assert report.traffic["out"].stored == packed.nbytes


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bits", [4, 8])
def test_apples_affine_dequantize_equals_mlx(dtype, bits):
    mx.random.seed(bits)
    w, scales, biases = mx.quantize(
        mx.random.normal((8, 128)).astype(dtype), group_size=64, bits=bits
    )
    out, report = apple_quantized.affine_dequantize(w, scales, biases, group_size=64, bits=bits)
    assert mx.array_equal(out, mx.dequantize(w, scales, biases, group_size=64, bits=bits))
    assert report.traffic["w"].loaded == w.nbytes
    assert report.traffic["out"].stored == out.nbytes


def test_a_sample_of_threadgroups_counts_only_what_ran():
    q, k, v = attention_inputs(mx.float16)
    _, whole = apple.sdpa_vector(q, k, v, D**-0.5)
    _, part = apple.sdpa_vector(q, k, v, D**-0.5, sample=4)
    assert (part[0].threadgroups_run, part[0].threadgroups) == (4, 16)
    assert 4 * part[0].traffic["keys"].loaded == whole[0].traffic["keys"].loaded


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("rows", "n"), [(1, 128), (1, 1088), (4, 128)])
def test_mlx_lms_quantized_attention_reads_the_cache_once_a_query_head_and_row(bits, rows, n):
    q, k, v = attention_inputs(mx.float16, rows=rows, n=n)
    packed = [mx.quantize(x, group_size=64, bits=bits) for x in (k, v)]
    out, reports = apple_quantized.quantized_attention(
        q, *packed, D**-0.5, group_size=64, bits=bits
    )
    wide = [
        tuple(a.astype(mx.float32) if a.dtype == mx.float16 else a for a in arrays)
        for arrays in packed
    ]
    expected = quantized_scaled_dot_product_attention(
        q.astype(mx.float32), *wide, scale=D**-0.5, mask=None, group_size=64, bits=bits
    )
    assert mx.abs(out.astype(mx.float32) - expected).max().item() < 2e-3
    keys, values = (report.traffic["w"] for report in reports)
    assert keys.load_ratio == 8.0 * rows
    # From four rows on the values go through a product of tiles.
    assert values.load_ratio >= 8.0


def test_apples_qmv_quad_loads_past_a_cache_that_ends_within_its_tile():
    q, k, v = attention_inputs(mx.float16, n=100)
    packed = [mx.quantize(x, group_size=64, bits=4) for x in (k, v)]
    with pytest.raises(faults.OutOfBounds, match=r"quantized\.h"):
        apple_quantized.quantized_attention(q, *packed, D**-0.5, group_size=64, bits=4)
