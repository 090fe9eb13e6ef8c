"""Attention in plain MLX, over plain or quantized keys and values, in bounded memory.

Where MLX has its fused kernel (Metal), that kernel runs over the layer's values, dequantized for
the call. Elsewhere keys go by in tiles with an online softmax, so that no matrix of scores
[heads, L, N] is ever whole (Milakov and Gimelshein 2018, "Online normalizer calculation for
softmax"; Dao et al. 2022, "FlashAttention").
"""

from __future__ import annotations

import mlx.core as mx

from mlx_kernels.affine import KVRows, rows_between

# Query rows of a tile, and scores of one: 1 Mi of them are 4 MB in float32.
QUERY_TILE = 256
SCORES_OF_A_TILE = 1 << 20
LONGEST_KEY_TILE = 4096
SHORTEST_KEY_TILE = 32


def plain_attention(
    queries: mx.array, keys: KVRows, values: KVRows, *, scale: float, causal: bool
) -> mx.array:
    """softmax(scale * Q K^T) V for grouped queries.

    queries: [B, H, L, D]; keys and values: [B, H_kv, N, D], H a multiple of H_kv. causal: row i of
    L sees keys up to N - L + i; otherwise every row sees all. Returns [B, H, L, D] of the queries'
    dtype; softmax and sums are in float32.
    """
    if mx.metal.is_available():
        n = keys.shape[2]
        return mx.fast.scaled_dot_product_attention(
            queries,
            rows_between(keys, 0, n),
            rows_between(values, 0, n),
            scale=scale,
            mask="causal" if causal and queries.shape[2] > 1 else None,
        )
    return tiled_attention(queries, keys, values, scale=scale, causal=causal)


def tiled_attention(
    queries: mx.array, keys: KVRows, values: KVRows, *, scale: float, causal: bool
) -> mx.array:
    """As plain_attention, with no more than a tile of scores and of dequantized rows at a time."""
    batch, heads, length, d = queries.shape
    first = keys.shape[2] - length  # keys before the first row's own
    # By token, as the projection after it takes its input: no copy to reorder it, and in place.
    out = mx.zeros((batch, length, heads, d), queries.dtype)
    for start in range(0, length, QUERY_TILE):
        stop = min(start + QUERY_TILE, length)
        tile = _query_tile(
            queries[:, :, start:stop],
            keys,
            values,
            scale=scale,
            visible=first + start + 1 if causal else None,
        )
        if length <= QUERY_TILE:
            return tile
        out[:, start:stop] = tile.swapaxes(1, 2)
        del tile
        mx.eval(out)
    return out.swapaxes(1, 2)


def _query_tile(
    queries: mx.array, keys: KVRows, values: KVRows, *, scale: float, visible: int | None
) -> mx.array:
    """Attention of some rows [B, H, L, D]. visible: keys that the first row sees, and each further
    row one more; None: all see all."""
    batch, heads, length, d = queries.shape
    kv_heads, n = keys.shape[1:3]
    group = heads // kv_heads
    # The rows of a group stacked: K and V are not repeated, and each product is one.
    rows = (queries.astype(mx.float32) * scale).reshape(batch, kv_heads, group * length, d)
    end = n if visible is None else min(n, visible + length - 1)
    tile = SCORES_OF_A_TILE // (batch * heads * length)
    tile = max(SHORTEST_KEY_TILE, min(LONGEST_KEY_TILE, tile))
    best = total = out = mx.array(0.0)
    for start in range(0, end, tile):
        stop = min(start + tile, end)
        key_tile = rows_between(keys, start, stop).astype(mx.float32)
        scores = rows @ key_tile.swapaxes(-1, -2)
        if visible is not None and stop > visible:
            scores = _hide_later_keys(scores, length, start, stop, visible)
        value_tile = rows_between(values, start, stop).astype(mx.float32)
        if start == 0:
            best = scores.max(axis=-1, keepdims=True)
            weights = mx.exp(scores - best)
            total = weights.sum(axis=-1, keepdims=True)
            out = weights @ value_tile
        else:
            higher = mx.maximum(best, scores.max(axis=-1, keepdims=True))
            weights, kept = mx.exp(scores - higher), mx.exp(best - higher)
            total = total * kept + weights.sum(axis=-1, keepdims=True)
            out = out * kept + weights @ value_tile
            best = higher
        if stop < end:
            # Otherwise MLX runs ahead, and the tiles of the whole context are alive at once.
            mx.eval(best, total, out)
    return (out / total).reshape(batch, heads, length, d).astype(queries.dtype)


def _hide_later_keys(
    scores: mx.array, length: int, start: int, stop: int, visible: int
) -> mx.array:
    """Scores [B, H_kv, G * L, stop - start] with -inf for keys that come after a row's own."""
    shape = scores.shape
    seen = mx.arange(start, stop)[None] < mx.arange(visible, visible + length)[:, None]
    by_row = scores.reshape(*shape[:2], -1, length, shape[-1])
    return mx.where(seen, by_row, -mx.inf).reshape(shape)
