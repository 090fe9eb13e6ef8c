"""Attention for decode and verify steps: 1 to 8 query tokens over a long cache, on Metal.

Every byte of K and V is loaded once for all query heads of its group and all query tokens, from the
cache's buffers and, of the newest tokens, from its open block (see open_block). A launch over parts
of the sequence (Flash-Decoding: Dao, Haziza, Massa and Sizov 2023) leaves partial
results, and a second joins them; a short context is one part and one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx

from mlx_kernels.affine import AffineRows, KVRows
from mlx_kernels.kernel import Kernel
from mlx_kernels.open_block import OPEN_ROWS, OpenBlock

MOST_ROWS = 8
HEAD_DIMS = (64, 128)
DTYPES = (mx.float32, mx.float16, mx.bfloat16)

# Keys of a part are at least so many: a shorter one costs more to join than it saves.
SHORTEST_PART = 64
MOST_PARTS = 256
# Threadgroups that a GPU core should have to choose from, to hide the latency of loads.
THREADGROUPS_A_CORE = 4

_METAL = Path(__file__).parent / "metal"
_HEADERS = (_METAL / "staged_rows.metal", _METAL / "grouped_attention.metal")
_MOST_THREADS = 1024  # of a threadgroup: Metal Feature Set Tables

ATTEND_PLAIN = Kernel(
    name="attend_plain",
    input_names=("queries", "keys", "values", "open_rows", "opened", "scale", "part"),
    output_names=("output", "statistics"),
    source=_METAL / "attend_plain.metal",
    headers=_HEADERS,
    ensure_row_contiguous=False,
)
ATTEND_AFFINE = Kernel(
    name="attend_affine",
    input_names=(
        "queries",
        "keys",
        "key_scales",
        "key_biases",
        "values",
        "value_scales",
        "value_biases",
        "open_words",
        "open_affine",
        "opened",
        "scale",
        "part",
    ),
    output_names=("output", "statistics"),
    source=_METAL / "attend_affine.metal",
    headers=_HEADERS,
    ensure_row_contiguous=False,
)
JOIN_PARTS = Kernel(
    name="join_parts",
    input_names=("partial", "statistics"),
    output_names=("output",),
    source=_METAL / "join_parts.metal",
)
_JOIN_SIMDGROUPS = 8

# Runs a kernel with the call that `mx.fast.metal_kernel` takes, and returns its outputs.
Launch = Callable[..., list[mx.array]]


def metal_launch(kernel: Kernel, **call: Any) -> list[mx.array]:
    """Runs a kernel on the GPU. Raises MetalUnavailable where there is none."""
    return kernel.metal()(**call)


@dataclass(frozen=True)
class LaunchPlan:
    """One launch of a kernel: the kernel, and what its call takes."""

    kernel: Kernel
    call: dict[str, Any]


def serves(queries_shape: tuple[int, ...], kv_heads: int, dtype: mx.Dtype) -> bool:
    """Whether queries [B, H, L, D] of this dtype can be attended by these kernels."""
    _, heads, rows, d = queries_shape
    if not 1 <= rows <= MOST_ROWS or d not in HEAD_DIMS or dtype not in DTYPES:
        return False
    tiles = -(-(heads // kv_heads * rows) // 8)
    return heads % kv_heads == 0 and tiles * 32 <= _MOST_THREADS // 2


def parts_for(n: int, threadgroups: int, cores: int) -> int:
    """Parts of a sequence of n keys: enough threadgroups for the GPU's cores.

    threadgroups: that one part has (batch times KV heads).
    """
    wanted = -(-cores * THREADGROUPS_A_CORE // threadgroups)
    return max(1, min(wanted, MOST_PARTS, n // SHORTEST_PART))


def attend_plan(
    queries: mx.array,
    keys: KVRows,
    values: KVRows,
    open_block: OpenBlock | None = None,
    *,
    scale: float,
    parts: int,
) -> LaunchPlan:
    """The launch over parts of the sequence; see decode_attention."""
    batch, heads, rows, d = queries.shape
    kv_heads, closed = keys.shape[1:3]
    opened = 0 if open_block is None else open_block.rows
    n = closed + opened
    group = heads // kv_heads
    quantized = isinstance(keys, AffineRows)
    # A staged tile of K and one of V take 17 KB of threadgroup memory at most (D 128).
    tile_keys = 16 if quantized or queries.dtype == mx.float32 else 32
    tiles = -(-(group * rows) // 8)
    shares = max(1, min(tile_keys // 8, 4 // tiles))
    part = -(-n // (parts * tile_keys)) * tile_keys
    parts = -(-n // part)
    out = queries.dtype if parts == 1 else mx.float32
    template: list[tuple[str, Any]] = [("O", out), ("D", d), ("G", group), ("R", rows)]
    template += [("KEYS", tile_keys), ("SHARES", shares)]
    template += [("OPEN", 0 if open_block is None else OPEN_ROWS)]
    if quantized:
        assert isinstance(values, AffineRows)
        kernel, inputs = ATTEND_AFFINE, [queries, keys.words, keys.scales, keys.biases]
        inputs += [values.words, values.scales, values.biases]
        # With OPEN 0 nothing of a block is read: any arrays of the dtypes stand for it.
        inputs += open_block.arrays if open_block else (keys.words, keys.scales)
        template += [("BITS", keys.bits), ("GROUP", keys.group_size)]
    else:
        kernel, inputs = ATTEND_PLAIN, [queries, keys, values]
        inputs += open_block.arrays if open_block else (keys,)
        template = [("T", queries.dtype), *template]
    threads = tiles * shares * 32
    return LaunchPlan(
        kernel,
        {
            "inputs": [*inputs, opened, float(scale), part],
            "template": template,
            "grid": (parts * threads, batch * kv_heads, 1),
            "threadgroup": (threads, 1, 1),
            "output_shapes": [(batch, heads, rows, parts, d), (batch, heads, rows, parts, 2)],
            "output_dtypes": [out, mx.float32],
        },
    )


def join_plan(partial: mx.array, statistics: mx.array, dtype: mx.Dtype) -> LaunchPlan:
    """The launch that joins the parts [B, H, R, parts, D] to [B, H, R, D] of this dtype."""
    batch, heads, rows, parts, d = partial.shape
    flat = batch * heads * rows
    threads = _JOIN_SIMDGROUPS * 32
    return LaunchPlan(
        JOIN_PARTS,
        {
            "inputs": [partial.reshape(flat, parts, d), statistics.reshape(flat, parts, 2)],
            "template": [("O", dtype), ("D", d), ("SIMDGROUPS", _JOIN_SIMDGROUPS)],
            "grid": (flat * threads, 1, 1),
            "threadgroup": (threads, 1, 1),
            "output_shapes": [(batch, heads, rows, d)],
            "output_dtypes": [dtype],
        },
    )


def decode_attention(
    queries: mx.array,
    keys: KVRows,
    values: KVRows,
    open_block: OpenBlock | None = None,
    *,
    scale: float,
    parts: int,
    launch: Launch = metal_launch,
) -> mx.array:
    """softmax(scale * Q K^T) V for 1 to 8 tokens that are causal among themselves.

    queries [B, H, R, D], any strides; keys and values [B, H_kv, closed, D] with closed >= 1, plain
    of the queries' dtype or affine-quantized, as views of longer buffers if need be (any strides,
    but a row's values one after the other). open_block: the N - closed rows after those, N >= R. D
    64 or 128, dtypes float32, float16, bfloat16. parts: of the sequence, from parts_for. Returns
    [B, H, R, D] of the queries' dtype; all sums and softmax are in float32.
    """
    plan = attend_plan(queries, keys, values, open_block, scale=scale, parts=parts)
    output, statistics = launch(plan.kernel, **plan.call)
    if output.shape[3] == 1:
        return output[:, :, :, 0]
    join = join_plan(output, statistics, queries.dtype)
    return launch(join.kernel, **join.call)[0]
