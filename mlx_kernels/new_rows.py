"""What a decode step does before attention, in one launch: rotation of queries and keys, and the
quantization of the new keys and values.

The rows come out as the cache's buffers hold them, keys and values together, and the cache puts
them in its place with one in-place write of MLX a buffer. The launch cannot do that itself: MLX
gives a kernel its inputs to read only, and orders launches by the outputs that it knows of.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from mlx_kernels.decode_attention import DTYPES, HEAD_DIMS, Launch, metal_launch
from mlx_kernels.kernel import Kernel
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache

_METAL = Path(__file__).parent / "metal"
_INPUTS = ("by_head", "offset", "position_scale", "log2_base")

WRITE_PLAIN = Kernel(
    name="write_plain",
    input_names=_INPUTS,
    output_names=("queries", "rows"),
    source=_METAL / "write_plain.metal",
    headers=(_METAL / "new_rows.metal",),
    ensure_row_contiguous=False,
)
WRITE_AFFINE = Kernel(
    name="write_affine",
    input_names=_INPUTS,
    output_names=("queries", "words", "affine"),
    source=_METAL / "write_affine.metal",
    headers=(_METAL / "new_rows.metal",),
    ensure_row_contiguous=False,
)


def serves_rotation(rope: Any, head_dim: int, dtype: mx.Dtype) -> bool:
    """Whether the launch rotates as this module does: mlx.nn.RoPE over whole heads."""
    whole = type(rope) is nn.RoPE and rope.dims == head_dim
    return whole and head_dim in HEAD_DIMS and dtype in DTYPES


def write_new_rows(
    by_head: mx.array,
    cache: KVCache | QuantizedKVCache,
    *,
    heads: int,
    kv_heads: int,
    rope: nn.RoPE,
    launch: Launch = metal_launch,
) -> mx.array:
    """Rotate new tokens and write their keys and values into the cache.

    by_head [B, L, heads + 2 kv_heads, D]: queries, keys and values of the tokens from position
    cache.offset on, any strides. Returns the rotated queries [B, heads, L, D]. Equal to
    `mx.fast.rope` and then `mx.quantize` as their Metal kernels compute them.
    """
    batch, length, _, d = by_head.shape
    dtype = by_head.dtype
    rows = (2, batch, kv_heads, length)
    template: list[tuple[str, Any]] = [("T", dtype), ("D", d), ("HEADS", heads)]
    template += [("KV_HEADS", kv_heads), ("TRADITIONAL", bool(rope.traditional))]
    shapes: list[tuple[int, ...]] = [(batch, heads, length, d)]
    if isinstance(cache, QuantizedKVCache):
        kernel = WRITE_AFFINE
        template += [("BITS", cache.bits), ("GROUP", cache.group_size)]
        shapes += [(*rows, d * cache.bits // 32), (2, *rows, d // cache.group_size)]
        dtypes = [dtype, mx.uint32, dtype]
    else:
        kernel = WRITE_PLAIN
        shapes += [(*rows, d)]
        dtypes = [dtype, dtype]
    queries, *written = launch(
        kernel,
        inputs=[by_head, cache.offset, float(rope.scale), math.log2(rope.base)],
        template=template,
        grid=(32 * (heads + 2 * kv_heads), length, batch),
        threadgroup=(32, 1, 1),
        output_shapes=shapes,
        output_dtypes=dtypes,
    )
    if isinstance(cache, QuantizedKVCache):
        cache.append_quantized(*written)
    else:
        cache.append(*written)
    return queries
