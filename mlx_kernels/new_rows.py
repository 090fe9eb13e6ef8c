"""What a decode step does before attention, in one launch: rotation of queries and keys, the
quantization of the new keys and values, and their write into the cache.

The rows go into the cache's open block, after those of the steps before: see open_block.
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
from mlx_kernels.open_block import OPEN_ROWS, OpenBlock

_METAL = Path(__file__).parent / "metal"
_POSITION = ("opened", "offset", "position_scale", "log2_base")

WRITE_PLAIN = Kernel(
    name="write_plain",
    input_names=("by_head", "open_rows", *_POSITION),
    output_names=("queries", "rows"),
    source=_METAL / "write_plain.metal",
    headers=(_METAL / "new_rows.metal",),
    ensure_row_contiguous=False,
)
WRITE_AFFINE = Kernel(
    name="write_affine",
    input_names=("by_head", "open_words", "open_affine", *_POSITION),
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
    """Rotate new tokens and write their keys and values into the cache's open block.

    by_head [B, L, heads + 2 kv_heads, D]: queries, keys and values of the tokens from position
    cache.offset on, any strides, L at most OPEN_ROWS. Returns the rotated queries [B, heads, L, D].
    Equal to `mx.fast.rope` and then `mx.quantize` as their Metal kernels compute them.
    """
    batch, length, vectors, d = by_head.shape
    dtype = by_head.dtype
    rows = (2, batch, kv_heads, OPEN_ROWS)
    template: list[tuple[str, Any]] = [("T", dtype), ("D", d), ("HEADS", heads)]
    template += [("KV_HEADS", kv_heads), ("TRADITIONAL", bool(rope.traditional))]
    template += [("OPEN", OPEN_ROWS)]
    if isinstance(cache, QuantizedKVCache):
        kernel = WRITE_AFFINE
        template += [("BITS", cache.bits), ("GROUP", cache.group_size)]
        shapes = [(*rows, d * cache.bits // 32), (2, *rows, d // cache.group_size)]
        dtypes = [mx.uint32, dtype]
    else:
        kernel = WRITE_PLAIN
        shapes, dtypes = [(*rows, d)], [dtype]
    # No other array stands for a first block: with another dtype MLX builds the kernel anew.
    block = cache.block_for(length) or OpenBlock(tuple(map(mx.zeros, shapes, dtypes)), 0)
    queries, *written = launch(
        kernel,
        inputs=[
            by_head,
            *block.arrays,
            block.rows,
            cache.offset,
            float(rope.scale),
            math.log2(rope.base),
        ],
        template=template,
        grid=(32 * (length * vectors + block.rows * 2 * kv_heads), batch, 1),
        threadgroup=(32, 1, 1),
        output_shapes=[(batch, heads, length, d), *shapes],
        output_dtypes=[dtype, *dtypes],
    )
    cache.keep_open(OpenBlock(tuple(written), block.rows + length))
    return queries
