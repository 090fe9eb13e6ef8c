"""Attention of new tokens over a layer's cache: rotation, write, attention; the paths there are."""

from __future__ import annotations

from typing import Any, Protocol

import mlx.core as mx

from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.plain_attention import plain_attention

Cache = KVCache | QuantizedKVCache


class AttentionPath(Protocol):
    """Writes new tokens into a cache and attends over all of it."""

    def __call__(
        self,
        by_head: mx.array,
        cache: Cache,
        *,
        heads: int,
        kv_heads: int,
        rope: Any,
        scale: float,
    ) -> mx.array:
        """by_head [B, L, heads + 2 kv_heads, D]: queries, keys and values before rotation.

        rope: a module of mlx-lm, called with `offset`. Tokens are causal among themselves. Returns
        [B, heads, L, D].
        """
        ...


def plain_path(
    by_head: mx.array,
    cache: Cache,
    *,
    heads: int,
    kv_heads: int,
    rope: Any,
    scale: float,
) -> mx.array:
    """The path of plain MLX operations: see AttentionPath."""
    rotated = rope(by_head[:, :, : heads + kv_heads].swapaxes(1, 2), offset=cache.offset)
    new_values = by_head[:, :, heads + kv_heads :].swapaxes(1, 2)
    cache.append(mx.stack([rotated[:, heads:], new_values]))
    queries = rotated[:, :heads]
    # Attention may run tile by tile right here: what it does not need is let go first.
    del by_head, rotated, new_values
    keys, values = cache.rows()
    return plain_attention(queries, keys, values, scale=scale, causal=True)
