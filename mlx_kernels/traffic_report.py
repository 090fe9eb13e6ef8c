"""What a decode step loads and stores: this package's kernels, Apple's, and mlx-lm's composition.

All run in the emulator on the same inputs. Counted are the loads and stores that a kernel's text
issues, before any cache of the GPU: repeats of a load may be served by a cache there. What comes
before attention is counted by itself: rotation, quantization and the write into the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from mlx_kernels.affine import AffineRows, KVRows
from mlx_kernels.decode_attention import attend_plan, join_plan, parts_for
from mlx_kernels.emulator import LaunchReport, apple, apple_quantized
from mlx_kernels.float64_attention import largest_error
from mlx_kernels.kernel import Kernel
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.new_rows import write_new_rows
from mlx_kernels.open_block import OPEN_ROWS
from mlx_kernels.step_inputs import (
    OPENED,
    StepShape,
    arrays_of,
    parted,
    random_queries,
    random_rows,
)

COUNTED = "loads and stores issued by the kernels' text, before any cache of the GPU"
WRITE_COUNTED = (
    "the same, of new tokens and the cache's rows, a step in the mean from one closing of the open "
    "block to the next; without the first of all blocks, made of zeros, and without the copy of a "
    "buffer that grows, once in 256 rows"
)

# Contexts above it are counted from a sample of threadgroups, without their results.
LONGEST_WHOLE = 4096
SAMPLE = 16

# What MLX takes on a base chip (8 to 10 GPU cores) for a long context
# (scaled_dot_product_attention.cpp, MLX 0.32).
APPLE_BLOCKS = 64
APPLE_MOST_ROWS = 32  # query tokens times group, above which MLX takes no vector kernel
APPLE_KEYS = 64  # that a threadgroup of affine_qmv_quad takes; of fewer it reads past the end
CORES = 8  # that this package's split is for in this report: an M1's


@dataclass(frozen=True)
class StepTraffic:
    """One way to compute the step.

    launches: kernels that run. kv_read: bytes of K and V (with scales and biases) loaded. ratio: of
    kv_read to the floor, each byte once. written: bytes stored, results between launches included.
    largest_error: against float64 over the cache's values; None if only a sample of threadgroups
    ran. note: what is derived, or what MLX would do instead.
    """

    name: str
    launches: int
    kv_read: int
    ratio: float
    written: int
    largest_error: float | None
    note: str = ""


@dataclass(frozen=True)
class WriteTraffic:
    """One way to rotate a step's tokens and to write their keys and values into the cache.

    launches, read, written: kernels that run, and bytes loaded and stored, in the mean of a step.
    note: what is in them once in some steps, and what is derived.
    """

    name: str
    launches: float
    read: float
    written: float
    note: str


def step_traffic(shape: StepShape, *, context: int, rows: int) -> list[StepTraffic]:
    """The step of `rows` query tokens over `context` keys, in every way that serves its cache."""
    mx.random.seed(context + rows)
    queries = random_queries(shape, rows)
    keys, values = random_rows(shape, context), random_rows(shape, context)
    mx.eval(queries, arrays_of(keys), arrays_of(values))
    sample = SAMPLE if context > LONGEST_WHOLE else None
    ways: list[Callable[..., StepTraffic]] = [_ours]
    if isinstance(keys, AffineRows):
        ways += [_mlx_lm_quantized] if context >= APPLE_KEYS else []
    else:
        ways.append(_apple_one_pass)
    group = shape.heads // shape.kv_heads
    if not isinstance(keys, AffineRows) and rows * group <= APPLE_MOST_ROWS:
        ways.append(_apple_two_pass)
        if rows == 1 and group == 8:
            ways.append(_apple_two_pass_gqa)
    return [way(queries, keys, values, shape.scale, sample) for way in ways]


def write_traffic(shape: StepShape, *, rows: int) -> list[WriteTraffic]:
    """Writing `rows` new tokens a step: this package's launch, and mlx-lm's operations, derived."""
    return [_our_write(shape, rows), _mlx_lm_write(shape, rows)]


def _our_write(shape: StepShape, rows: int) -> WriteTraffic:
    cache = KVCache() if shape.bits == 16 else QuantizedKVCache(shape.group_size, shape.bits)
    reports: list[LaunchReport] = []

    def launch(kernel: Kernel, **call: Any) -> list[mx.array]:
        done = kernel.emulate(**call, orders=("forward",))
        reports.append(done.report)
        return done.outputs

    steps = OPEN_ROWS // rows
    size = (1, rows, shape.heads + 2 * shape.kv_heads, shape.head_dim)
    for _ in range(steps):
        write_new_rows(
            mx.random.normal(size).astype(shape.mlx_dtype),
            cache,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            rope=nn.RoPE(shape.head_dim),
            launch=launch,
        )
    inputs = {"by_head", "open_rows", "open_words", "open_affine"}
    read = sum(t.loaded for report in reports for n, t in report.traffic.items() if n in inputs)
    written = sum(t.stored for report in reports for t in report.traffic.values())
    block = cache.block_for(0)
    assert block is not None
    closed, updates = sum(array.nbytes for array in block.used()), len(block.arrays)
    return WriteTraffic(
        "this package",
        1 + updates / steps,
        (read + closed) / steps,
        (written + closed) / steps,
        f"1 launch; closing, 1 in {steps} steps: {updates} of MLX's in-place updates, {closed:,} "
        "bytes read and written, derived",
    )


def _mlx_lm_write(shape: StepShape, rows: int) -> WriteTraffic:
    """mx.fast.rope of queries and of keys; of keys and of values mx.quantize and an update in place
    of the buffer, or of three (mlx_lm/models/cache.py, mlx-lm 0.32)."""
    vector = rows * shape.head_dim * shape.mlx_dtype.size
    rotated, new = (shape.heads + shape.kv_heads) * vector, 2 * shape.kv_heads * vector
    if shape.bits == 16:
        return WriteTraffic("mlx-lm", 4, rotated + new, rotated + new, "derived")
    groups = shape.head_dim // shape.group_size
    kept = shape.head_dim * shape.bits // 8 + 2 * groups * shape.mlx_dtype.size
    kept *= 2 * shape.kv_heads * rows
    return WriteTraffic("mlx-lm", 10, rotated + new + kept, rotated + 2 * kept, "derived")


def _ours(
    queries: mx.array, keys: KVRows, values: KVRows, scale: float, sample: int | None
) -> StepTraffic:
    n = keys.shape[2]
    opened = min(OPENED, n - 1)
    parts = parts_for(n, keys.shape[1], CORES)
    plan = attend_plan(queries, *parted(keys, values, opened), scale=scale, parts=parts)
    once: dict[str, Any] = {"orders": ("forward",), "sample": sample}
    first = plan.kernel.emulate(**plan.call, **once)
    partial, statistics = first.outputs
    reports, out = [first.report], partial[:, :, :, 0]
    if partial.shape[3] > 1:
        join = join_plan(partial, statistics, queries.dtype)
        second = join.kernel.emulate(**join.call, **once)
        reports, out = [first.report, second.report], second.outputs[0]
    caches = {
        "keys",
        "key_scales",
        "key_biases",
        "values",
        "value_scales",
        "value_biases",
        "open_rows",
        "open_words",
        "open_affine",
    }
    note = f"{opened} of the keys in an open block"
    return _counted(
        "this package", reports, caches, out, queries, keys, values, scale, sample, note=note
    )


def _apple_one_pass(
    queries: mx.array, keys: mx.array, values: mx.array, scale: float, sample: int | None
) -> StepTraffic:
    over = queries.shape[1] // keys.shape[1] * queries.shape[2] > APPLE_MOST_ROWS
    note = "MLX takes an unfused graph for so many rows times group" if over else ""
    return _apple("sdpa_vector", apple.sdpa_vector, queries, keys, values, scale, sample, note=note)


def _apple_two_pass(
    queries: mx.array, keys: mx.array, values: mx.array, scale: float, sample: int | None
) -> StepTraffic:
    run, blocks = apple.sdpa_vector_2pass, APPLE_BLOCKS
    name = "sdpa_vector_2pass"
    return _apple(name, run, queries, keys, values, scale, sample, blocks=blocks)


def _apple_two_pass_gqa(
    queries: mx.array, keys: mx.array, values: mx.array, scale: float, sample: int | None
) -> StepTraffic:
    run, blocks = apple.sdpa_vector_2pass, APPLE_BLOCKS
    name = "sdpa_vector_2pass gqa"
    return _apple(name, run, queries, keys, values, scale, sample, blocks=blocks, gqa=True)


def _apple(
    name: str,
    run: Callable[..., tuple[mx.array, list[LaunchReport]]],
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    scale: float,
    sample: int | None,
    note: str = "",
    **options: Any,
) -> StepTraffic:
    out, reports = run(queries, keys, values, scale, causal=True, sample=sample, **options)
    caches = {"keys", "values"}
    return _counted(
        f"MLX {name}", reports, caches, out, queries, keys, values, scale, sample, note=note
    )


def _mlx_lm_quantized(
    queries: mx.array, keys: AffineRows, values: AffineRows, scale: float, sample: int | None
) -> StepTraffic:
    whole = keys.shape[2] // APPLE_KEYS * APPLE_KEYS
    note = f"over {whole} keys, " if whole < keys.shape[2] else ""
    keys, values = keys.rows(0, whole), values.rows(0, whole)
    out, reports = apple_quantized.quantized_attention(
        queries,
        (keys.words, keys.scales, keys.biases),
        (values.words, values.scales, values.biases),
        scale,
        group_size=keys.group_size,
        bits=keys.bits,
        sample=sample,
    )
    # MLX's own launches beside the two products: scaling, softmax, and the sum of a split product
    # (dispatch in quantized.cpp, MLX 0.32: below 4 rows, from 1,024 keys on).
    others = 2 + (queries.shape[2] < 4 and keys.shape[2] >= 1024)
    note += "without the mask; bytes of its scaling, softmax and sums are not counted"
    caches = {"w", "scales", "biases"}
    return _counted(
        "mlx-lm quantized",
        reports,
        caches,
        out,
        queries,
        keys,
        values,
        scale,
        sample,
        note=note,
        causal=False,
        uncounted_launches=others,
    )


def _counted(
    name: str,
    reports: Sequence[LaunchReport],
    caches: set[str],
    out: mx.array,
    queries: mx.array,
    keys: KVRows,
    values: KVRows,
    scale: float,
    sample: int | None,
    note: str = "",
    causal: bool = True,
    uncounted_launches: int = 0,
) -> StepTraffic:
    """The sums over launches; a launch that ran a sample of threadgroups counts as all of it."""
    read = written = 0.0
    for report in reports:
        whole = report.threadgroups / report.threadgroups_run
        for buffer, traffic in report.traffic.items():
            read += whole * traffic.loaded * (buffer in caches)
            written += whole * traffic.stored
    error = None
    if sample is None:
        error = largest_error(out, queries, keys, values, scale=scale, causal=causal)
    else:
        sampled = f"counted from {sample} threadgroups of a launch as if all did as much"
        note = f"{note}; {sampled}" if note else sampled
    return StepTraffic(
        name,
        len(reports) + uncounted_launches,
        round(read),
        read / (keys.nbytes + values.nbytes),
        round(written),
        error,
        note,
    )
