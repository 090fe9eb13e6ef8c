"""Affine-quantized rows: what `mx.quantize` returns, with the numbers that say how to read it."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

BITS = (4, 8)
GROUP_SIZES = (32, 64)


@dataclass(frozen=True)
class AffineRows:
    """Rows [B, heads, N, D], quantized along D: value = scale * code + bias for each group.

    words: uint32 [B, heads, N, D * bits / 32], codes from the low bits up. scales, biases:
    [B, heads, N, D / group_size], of the dtype that the values have. bits: 4 or 8. group_size: 32
    or 64 values along D. Format: `mx.quantize` (mode "affine").
    """

    words: mx.array
    scales: mx.array
    biases: mx.array
    group_size: int
    bits: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[B, heads, N, D] of the values."""
        batch, heads, rows, words = self.words.shape
        return batch, heads, rows, words * 32 // self.bits

    @property
    def dtype(self) -> mx.Dtype:
        """Of the values."""
        return self.scales.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and biases."""
        return self.words.nbytes + self.scales.nbytes + self.biases.nbytes

    def rows(self, start: int, stop: int) -> AffineRows:
        """Rows start to stop, as views."""
        words, scales, biases = (
            part[..., start:stop, :] for part in (self.words, self.scales, self.biases)
        )
        return AffineRows(words, scales, biases, self.group_size, self.bits)

    def dequantized(self) -> mx.array:
        """The values, [B, heads, N, D]."""
        return mx.dequantize(
            self.words, self.scales, self.biases, group_size=self.group_size, bits=self.bits
        )


# Keys or values of a layer: plain [B, heads, N, D], or quantized.
KVRows = mx.array | AffineRows


def rows_between(rows: KVRows, start: int, stop: int) -> mx.array:
    """Rows start to stop as plain values [B, heads, stop - start, D]."""
    if isinstance(rows, AffineRows):
        return rows.rows(start, stop).dequantized()
    return rows[..., start:stop, :]


def group_size_for(head_dim: int) -> int | None:
    """The larger group that divides a head of this size, or None if none does."""
    return next((g for g in reversed(GROUP_SIZES) if head_dim % g == 0), None)
