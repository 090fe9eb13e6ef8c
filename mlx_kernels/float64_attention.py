"""Attention in float64, which every path is held against."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from mlx_kernels.affine import AffineRows, KVRows


def float64(values: mx.array) -> np.ndarray:
    """The same values in float64."""
    return np.array(values.astype(mx.float32)).astype(np.float64)


def exact_values(rows: KVRows) -> np.ndarray:
    """The values [B, heads, N, D] of plain or quantized rows, nothing rounded."""
    if not isinstance(rows, AffineRows):
        return float64(rows)
    words = np.array(rows.words)[..., None]
    codes = words >> np.arange(0, 32, rows.bits, dtype=np.uint32) & (2**rows.bits - 1)
    codes = codes.reshape(*rows.shape[:3], -1, rows.group_size).astype(np.float64)
    scales, biases = (float64(part)[..., None] for part in (rows.scales, rows.biases))
    return (scales * codes + biases).reshape(rows.shape)


def float64_attention(
    queries: mx.array, keys: KVRows, values: KVRows, *, scale: float, causal: bool = True
) -> np.ndarray:
    """softmax(scale * Q K^T) V in float64, [B, H, L, D], of the values as they are.

    queries [B, H, L, D], keys and values [B, H_kv, N, D]. Holds all scores: for short contexts.
    """
    q, k, v = float64(queries), exact_values(keys), exact_values(values)
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = scale * q @ k.swapaxes(-1, -2)
    length, n = scores.shape[-2:]
    if causal:
        hidden = np.arange(n)[None] > (n - length + np.arange(length))[:, None]
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def largest_error(
    out: mx.array,
    queries: mx.array,
    keys: KVRows,
    values: KVRows,
    *,
    scale: float,
    causal: bool = True,
) -> float:
    """Largest difference of an output from float64_attention."""
    expected = float64_attention(queries, keys, values, scale=scale, causal=causal)
    return float(np.abs(float64(out) - expected).max())
