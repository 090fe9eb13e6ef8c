"""Plain attention is exact, for any shape, and its memory does not grow with the context."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_kernels.affine import AffineRows
from mlx_kernels.float64_attention import largest_error
from mlx_kernels.plain_attention import (
    LONGEST_KEY_TILE,
    QUERY_TILE,
    plain_attention,
    tiled_attention,
)
from mlx_kernels.step_inputs import arrays_of


def attention_inputs(n, rows=1, heads=4, kv_heads=2, d=64, batch=1, dtype=mx.float32, seed=1):
    keys = mx.random.split(mx.random.key(seed), 3)
    shapes = ((batch, heads, rows, d), (batch, kv_heads, n, d), (batch, kv_heads, n, d))
    return [mx.random.normal(s, key=k).astype(dtype) for s, k in zip(shapes, keys, strict=True)]


def quantized(rows, group_size, bits):
    return AffineRows(*mx.quantize(rows, group_size=group_size, bits=bits), group_size, bits)


@settings(max_examples=15, deadline=None)
@given(
    kv_heads=st.sampled_from([1, 2, 3]),
    group=st.sampled_from([1, 2, 3, 4, 8, 16]),
    d=st.sampled_from([64, 80, 128]),
    n=st.integers(1, 300),
    rows=st.integers(1, 300),
    batch=st.sampled_from([1, 2]),
    causal=st.booleans(),
)
def test_plain_attention_is_exact_for_any_shape(kv_heads, group, d, n, rows, batch, causal):
    rows = min(rows, n)
    q, k, v = attention_inputs(n, rows, kv_heads * group, kv_heads, d, batch)
    out = plain_attention(q, k, v, scale=d**-0.5, causal=causal)
    assert out.shape == q.shape
    assert largest_error(out, q, k, v, scale=d**-0.5, causal=causal) < 2e-6


@pytest.mark.parametrize("causal", [True, False])
def test_a_context_of_several_tiles_of_queries_and_of_keys(causal):
    q, k, v = attention_inputs(LONGEST_KEY_TILE + 700, 2 * QUERY_TILE + 3)
    out = tiled_attention(q, k, v, scale=0.125, causal=causal)
    assert largest_error(out, q, k, v, scale=0.125, causal=causal) < 2e-6


@pytest.mark.parametrize("rows", [1, 5, QUERY_TILE + 9])
@pytest.mark.parametrize(("group_size", "bits"), [(64, 8), (32, 8), (64, 4), (32, 4)])
def test_attention_over_quantized_rows_is_attention_over_their_values(group_size, bits, rows):
    q, k, v = attention_inputs(LONGEST_KEY_TILE + 333, rows)
    k, v = quantized(k, group_size, bits), quantized(v, group_size, bits)
    out = tiled_attention(q, k, v, scale=0.125, causal=True)
    assert largest_error(out, q, k, v, scale=0.125) < 2e-6


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16], ids=str)
def test_16_bit_values_lose_nothing_but_the_rounding_of_the_result(dtype):
    q, k, v = attention_inputs(500, 3, dtype=dtype)
    out = tiled_attention(q, k, v, scale=0.125, causal=True)
    wide = [x.astype(mx.float32) for x in (q, k, v)]
    expected = tiled_attention(*wide, scale=0.125, causal=True).astype(dtype)
    assert out.dtype == dtype
    assert mx.array_equal(out, expected)


def test_extremes():
    q, k, v = attention_inputs(LONGEST_KEY_TILE + 77)
    equal = mx.zeros_like(k)
    assert (
        largest_error(tiled_attention(q, equal, v, scale=1.0, causal=True), q, equal, v, scale=1.0)
        < 1e-6
    )
    one_key = tiled_attention(q, k[..., :1, :], v[..., :1, :], scale=1.0, causal=True)
    assert mx.array_equal(one_key, mx.repeat(v[..., :1, :], 2, axis=1))
    for sign in (1, -1):
        huge = mx.zeros_like(q) + sign * 1e4
        ones = mx.concatenate([mx.ones_like(k[..., :5, :]), k[..., 5:, :] * 0.5], axis=-2) / 64
        out = tiled_attention(huge, ones, v, scale=1.0, causal=True)
        assert mx.isfinite(out).all()
        # A float32 product of 1e4 is exact to about 1e-3, and weights are as exact as that.
        assert largest_error(out, huge, ones, v, scale=1.0) < 5e-3


def test_memory_does_not_grow_with_the_context():
    peaks = []
    for n in (8_192, 24_576):
        q, k, v = attention_inputs(n, 260, heads=16)
        k, v = quantized(k, 64, 4), quantized(v, 64, 4)
        mx.eval(q, arrays_of(k), arrays_of(v))
        mx.clear_cache()
        mx.reset_peak_memory()
        before = mx.get_active_memory()
        mx.eval(tiled_attention(q, k, v, scale=0.125, causal=True))
        peaks.append(mx.get_peak_memory() - before)
        whole = 16 * 260 * n * 4
        assert peaks[-1] < whole
    assert peaks[1] < 1.1 * peaks[0]
