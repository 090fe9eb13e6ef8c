"""Which steps the kernels take on this machine: measured once for a chip, an MLX and a shape.

At each point, a number of query tokens and a context, the kernels are held against the plain path:
results must agree, and the time must be shorter. Nothing is assumed to be faster. What they write
into the cache must agree as well, or none is taken.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

import mlx.core as mx
import mlx.nn as nn

from mlx_kernels import decode_attention, new_rows
from mlx_kernels.affine import AffineRows
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.plain_attention import plain_attention
from mlx_kernels.step_inputs import StepRows, StepShape, random_queries, random_step_rows

log = logging.getLogger(__name__)

ROWS = (1, 4, 8)
CONTEXTS = (256, 2048, 16_384)

# Rounding of one operation of the dtype, with room for sums in another order.
AGREEMENT = {mx.float32: 1e-4, mx.float16: 4e-3, mx.bfloat16: 3.2e-2}

_ROUNDS = 5
_CHAIN = 8  # dependent calls: independent ones overlap, and flatter a kernel
_CACHES = 3  # taken in turn, so that none is still in the GPU's caches


@dataclass(frozen=True)
class Point:
    """One measurement: seconds of one step, and the largest difference from the plain path."""

    rows: int
    context: int
    kernel_seconds: float
    plain_seconds: float
    difference: float
    agrees: bool

    @property
    def kernel_is_better(self) -> bool:
        """Whether the kernels agree with the plain path and take less time."""
        return self.agrees and self.kernel_seconds < self.plain_seconds


@dataclass(frozen=True)
class KernelChoice:
    """The points measured. Each speaks for the rows up to its own (from the next lower point's on)
    and for the contexts from its own up to the next one's; below the shortest, the shortest."""

    points: tuple[Point, ...]

    def takes(self, rows: int, context: int) -> bool:
        """Whether the kernels take a step of so many query tokens over so many keys."""
        of_rows = min((p.rows for p in self.points if p.rows >= rows), default=None)
        near = [p for p in self.points if p.rows == of_rows]
        if not near:
            return False
        shorter = [p for p in near if p.context <= context]
        point = (
            max(shorter, key=lambda p: p.context) if shorter else min(near, key=lambda p: p.context)
        )
        return point.kernel_is_better


Attend = Callable[[mx.array, StepRows], mx.array]


def choose(
    shape: StepShape,
    *,
    chip: str,
    cores: int,
    folder: Path | None,
    launch: decode_attention.Launch = decode_attention.metal_launch,
    rows: Sequence[int] = ROWS,
    contexts: Sequence[int] = CONTEXTS,
) -> KernelChoice:
    """The choice for this shape on this chip: from the folder if it was measured there before with
    this MLX and these kernels, else measured now and kept.

    folder: of measurements; None keeps nothing. A measurement takes a second or two on a GPU. A
    damaged file, or a folder that cannot be written, only costs another measurement.
    """
    key = {**asdict(shape), "chip": chip, "cores": cores, "mlx": version("mlx")}
    key |= {"kernels": kernel_text_digest(), "rows": list(rows), "contexts": list(contexts)}
    file = None if folder is None else folder / f"attention-{_digest(json.dumps(key))}.json"
    if file is not None and (kept := _read(file)) is not None:
        return kept
    points: tuple[Point, ...] = ()
    if written_rows_agree(shape, launch):
        points = tuple(
            measure_point(shape, r, n, cores=cores, launch=launch) for r in rows for n in contexts
        )
    else:
        log.warning("kernels off: the rows that they write differ from plain MLX")
    for point in points:
        if not point.agrees:
            log.warning(
                "kernel off for %d rows over %d keys: it differs from plain MLX by %.3g",
                point.rows,
                point.context,
                point.difference,
            )
    choice = KernelChoice(points)
    if file is not None:
        _write(file, key, choice)
    return choice


def written_rows_agree(shape: StepShape, launch: decode_attention.Launch) -> bool:
    """Whether rotated queries and written rows are those of mx.fast.rope and mx.quantize.

    In an open block that is new, and in one that has rows already.
    """
    vectors = shape.heads + 2 * shape.kv_heads
    rope = nn.RoPE(shape.head_dim)
    bound = AGREEMENT[shape.mlx_dtype]
    ours, plain = (
        KVCache() if shape.bits == 16 else QuantizedKVCache(shape.group_size, shape.bits)
        for _ in range(2)
    )
    pairs = []
    for length in (2, 3):
        by_head = mx.random.normal((1, length, vectors, shape.head_dim)).astype(shape.mlx_dtype)
        rotated = rope(
            by_head[:, :, : shape.heads + shape.kv_heads].swapaxes(1, 2), offset=plain.offset
        )
        new_values = by_head[:, :, shape.heads + shape.kv_heads :].swapaxes(1, 2)
        plain.append(mx.stack([rotated[:, shape.heads :], new_values]))
        queries = new_rows.write_new_rows(
            by_head, ours, heads=shape.heads, kv_heads=shape.kv_heads, rope=rope, launch=launch
        )
        pairs.append((queries, rotated[:, : shape.heads], bound))
    for mine, theirs in zip(ours.rows(), plain.rows(), strict=True):
        if isinstance(mine, AffineRows) and isinstance(theirs, AffineRows):
            # A code may be one off where rounding decides.
            step = float(mx.abs(theirs.scales.astype(mx.float32)).max())
            pairs.append((mine.dequantized(), theirs.dequantized(), bound + step))
        elif isinstance(mine, mx.array) and isinstance(theirs, mx.array):
            pairs.append((mine, theirs, bound))
    return all(_difference(a, b) <= most for a, b, most in pairs)


def _difference(a: mx.array, b: mx.array) -> float:
    return float(mx.abs(a.astype(mx.float32) - b.astype(mx.float32)).max())


def measure_point(
    shape: StepShape, rows: int, context: int, *, cores: int, launch: decode_attention.Launch
) -> Point:
    """Both paths on the same random inputs, in turn; for the kernels, with an open block."""
    queries = random_queries(shape, rows)
    caches = [random_step_rows(shape, context) for _ in range(_CACHES)]
    mx.eval(queries)
    for cache in caches:
        cache.evaluate()
    parts = decode_attention.parts_for(context, shape.kv_heads, cores)

    def kernel(q: mx.array, cache: StepRows) -> mx.array:
        return decode_attention.decode_attention(
            q, *cache.parted, scale=shape.scale, parts=parts, launch=launch
        )

    def plain(q: mx.array, cache: StepRows) -> mx.array:
        return plain_attention(q, cache.keys, cache.values, scale=shape.scale, causal=True)

    # Right with an open block and without one; the latter is rare, and not timed.
    whole = replace(caches[0], parted=(caches[0].keys, caches[0].values, None))
    outs = mx.stack([kernel(queries, cache) for cache in (caches[0], whole)])
    difference = _difference(outs, plain(queries, caches[0]))
    agrees = difference <= AGREEMENT[shape.mlx_dtype]  # false for NaN
    if not agrees:
        return Point(rows, context, 0.0, 0.0, difference, agrees=False)
    seconds: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for path, taken in zip((kernel, plain), seconds, strict=True):
            taken.append(seconds_of_chain(path, queries, caches))
    return Point(rows, context, median(seconds[0]), median(seconds[1]), difference, agrees=True)


def seconds_of_chain(attend: Attend, queries: mx.array, caches: Sequence[StepRows]) -> float:
    """Seconds of one call in a chain of calls that each need the one before."""
    start = time.perf_counter()
    for i in range(_CHAIN):
        queries = attend(queries, caches[i % len(caches)])
    mx.eval(queries)
    return (time.perf_counter() - start) / _CHAIN


def kernel_text_digest() -> str:
    """Of the text of all kernels that a choice is about."""
    kernels = (
        decode_attention.ATTEND_PLAIN,
        decode_attention.ATTEND_AFFINE,
        decode_attention.JOIN_PARTS,
        new_rows.WRITE_PLAIN,
        new_rows.WRITE_AFFINE,
    )
    paths = sorted({path for k in kernels for path in (k.source, *k.headers)})
    return _digest("".join(path.read_text(encoding="utf-8") for path in paths))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(file: Path) -> KernelChoice | None:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return KernelChoice(tuple(Point(**point) for point in kept["points"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        log.warning("measuring kernels anew: %s cannot be read (%s)", file, error)
        return None


def _write(file: Path, key: dict[str, object], choice: KernelChoice) -> None:
    text = json.dumps({"key": key, "points": [asdict(p) for p in choice.points]}, indent=1)
    part = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        log.warning("kernel measurements are not kept: %s", error)
