"""Times of a decode step's attention on this GPU: this package's kernels, MLX's and mlx-lm's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import mlx.core as mx
from mlx_lm.models.base import quantized_scaled_dot_product_attention

from mlx_kernels.affine import AffineRows
from mlx_kernels.decode_attention import Launch, decode_attention, metal_launch, parts_for
from mlx_kernels.kernel_choice import seconds_of_chain
from mlx_kernels.step_inputs import StepRows, StepShape, random_queries, random_step_rows

CONTEXTS = tuple(256 << i for i in range(10))  # 256 to 131,072
_ROUNDS = 7
_COPY_BYTES = 512 << 20  # more than any chip's caches
_WORKING_SET = 256 << 20  # bytes of caches taken in turn, so that none is in the GPU's caches


@dataclass(frozen=True)
class StepTime:
    """Medians in milliseconds. bandwidth_share: of the bytes of K and V, each read once, in the
    measured bandwidth of a copy, for this package's kernels."""

    context: int
    rows: int
    kv_bits: int
    kernel_ms: float
    other: str
    other_ms: float
    bandwidth_share: float


def copy_bandwidth(size: int = _COPY_BYTES) -> float:
    """Bytes a second that a copy reads and writes, the best of several."""
    source = mx.zeros((size // 4,), mx.float32)
    mx.eval(source)
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        mx.eval(source + 1.0)
        best = min(best, time.perf_counter() - start)
    return 2 * size / best


def step_times(
    shapes: Sequence[StepShape],
    *,
    rows: Sequence[int],
    cores: int,
    contexts: Sequence[int] = CONTEXTS,
    bandwidth: float | None = None,
    launch: Launch = metal_launch,
) -> Iterator[StepTime]:
    """Chains of dependent calls, the ways in turn, over several caches in turn.

    bandwidth: bytes a second; measured if None.
    """
    bandwidth = bandwidth or copy_bandwidth()
    for context in contexts:
        for shape in shapes:
            for r in rows:
                yield _step_time(shape, r, context, cores, bandwidth, launch)


def _step_time(
    shape: StepShape, rows: int, context: int, cores: int, bandwidth: float, launch: Launch
) -> StepTime:
    queries = random_queries(shape, rows)
    first = random_step_rows(shape, context)
    of_one = first.nbytes
    count = max(2, min(64, _WORKING_SET // of_one))
    caches = [first, *(random_step_rows(shape, context) for _ in range(count - 1))]
    mx.eval(queries)
    for cache in caches:
        cache.evaluate()
    parts = parts_for(context, shape.kv_heads, cores)
    mask = "causal" if rows > 1 else None

    def kernel(q: mx.array, cache: StepRows) -> mx.array:
        return decode_attention(q, *cache.parted, scale=shape.scale, parts=parts, launch=launch)

    def other(q: mx.array, cache: StepRows) -> mx.array:
        k, v = cache.keys, cache.values
        if isinstance(k, AffineRows) and isinstance(v, AffineRows):
            return quantized_scaled_dot_product_attention(
                q,
                (k.words, k.scales, k.biases),
                (v.words, v.scales, v.biases),
                shape.scale,
                mask,  # pyright: ignore[reportArgumentType]: takes "causal" too
                k.group_size,
                k.bits,
            )
        assert isinstance(k, mx.array)
        assert isinstance(v, mx.array)
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=shape.scale, mask=mask)

    ways: tuple[Callable[..., mx.array], ...] = (kernel, other)
    seconds: list[list[float]] = [[], []]
    for round_ in range(_ROUNDS + 1):
        for way, taken in zip(ways, seconds, strict=True):
            took = seconds_of_chain(way, queries, caches)
            if round_:  # the first one compiles
                taken.append(took)
    ours, theirs = (median(taken) for taken in seconds)
    return StepTime(
        context,
        rows,
        shape.bits,
        ours * 1e3,
        "mx.fast.scaled_dot_product_attention" if shape.bits == 16 else "mlx-lm quantized",
        theirs * 1e3,
        of_one / ours / bandwidth,
    )
