"""Random inputs of a decode step, in a cache's form: for counts and for times."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

from mlx_kernels.affine import AffineRows, KVRows


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


def arrays_of(rows: KVRows) -> list[mx.array]:
    """The arrays that hold the rows."""
    return [rows.words, rows.scales, rows.biases] if isinstance(rows, AffineRows) else [rows]
