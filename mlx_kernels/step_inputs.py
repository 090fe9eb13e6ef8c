"""Random inputs of a decode step, in a cache's form: for counts and for times."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

from mlx_kernels.affine import AffineRows, KVRows
from mlx_kernels.open_block import OPEN_ROWS, OpenBlock

# Rows of the open block in what is counted and timed: as many as it has in the mean.
OPENED = OPEN_ROWS // 2


@dataclass(frozen=True)
class StepShape:
    """Heads, KV heads, head size, dtype and quantization of a cache (bits 16 and group_size 0 for a
    plain one)."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    bits: int
    group_size: int

    @property
    def mlx_dtype(self) -> mx.Dtype:
        """The dtype of queries, and of plain rows or of scales and biases."""
        return getattr(mx, self.dtype)

    @property
    def scale(self) -> float:
        """Of scores: 1 / sqrt(head size)."""
        return self.head_dim**-0.5


@dataclass(frozen=True)
class StepRows:
    """Keys and values of a step, [1, kv_heads, N, head_dim], whole and as a cache holds them.

    parted: keys and values in the cache's buffers, and the open block of those after them.
    """

    keys: KVRows
    values: KVRows
    parted: tuple[KVRows, KVRows, OpenBlock | None]

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values."""
        return self.keys.nbytes + self.values.nbytes

    def evaluate(self) -> None:
        """Have all arrays computed."""
        closed_keys, closed_values, block = self.parted
        parts = (self.keys, self.values, closed_keys, closed_values)
        mx.eval([arrays_of(part) for part in parts], block.arrays if block else ())


def random_queries(shape: StepShape, rows: int) -> mx.array:
    """[1, heads, rows, head_dim]."""
    return mx.random.normal((1, shape.heads, rows, shape.head_dim)).astype(shape.mlx_dtype)


def random_rows(shape: StepShape, n: int) -> KVRows:
    """Keys or values, [1, kv_heads, n, head_dim]."""
    size = (1, shape.kv_heads, n, shape.head_dim)
    plain = mx.random.normal(size).astype(shape.mlx_dtype)
    if shape.bits == 16:
        return plain
    quantized = mx.quantize(plain, group_size=shape.group_size, bits=shape.bits)
    return AffineRows(*quantized, shape.group_size, shape.bits)


def random_step_rows(shape: StepShape, n: int) -> StepRows:
    """Random keys and values, the last OPENED of them in an open block."""
    keys, values = random_rows(shape, n), random_rows(shape, n)
    return StepRows(keys, values, parted(keys, values, min(OPENED, n - 1)))


def parted(keys: KVRows, values: KVRows, opened: int) -> tuple[KVRows, KVRows, OpenBlock | None]:
    """Keys and values without their last `opened` rows, and an open block of those."""
    if opened == 0:
        return keys, values, None
    of_keys, of_values = arrays_of(keys), arrays_of(values)
    first, *affine = (mx.stack(list(pair)) for pair in zip(of_keys, of_values, strict=True))
    arrays = (first, mx.stack(affine)) if affine else (first,)
    closed = keys.shape[2] - opened
    room = [(0, OPEN_ROWS - opened), (0, 0)]
    block = tuple(
        mx.contiguous(mx.pad(a[..., closed:, :], [(0, 0)] * (a.ndim - 2) + room)) for a in arrays
    )
    return _first(keys, closed), _first(values, closed), OpenBlock(block, opened)


def _first(rows: KVRows, n: int) -> KVRows:
    return rows.rows(0, n) if isinstance(rows, AffineRows) else rows[..., :n, :]


def arrays_of(rows: KVRows) -> list[mx.array]:
    """The arrays that hold the rows."""
    return [rows.words, rows.scales, rows.biases] if isinstance(rows, AffineRows) else [rows]
