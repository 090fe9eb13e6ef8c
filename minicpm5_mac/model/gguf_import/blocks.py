"""GGUF's quantized blocks as MLX's affine quantization, value for value.

A GGUF block is 32 weights of one row with a float16 scale d (and for Q4_1 a float16 minimum m):
    Q4_0: w = d * (q - 8), 18 bytes    Q4_1: w = d * q + m, 20 bytes    Q8_0: w = d * q, 34 bytes
(struct block_q4_0 and its neighbours in ggml-common.h). MLX keeps w = scale * q + bias for groups
of 32 with q unsigned, so scale = d and bias = -8d, m or -128d; the integers only move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

GROUP_SIZE = 32

_BLOCK_BYTES = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}
BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8}


@dataclass(frozen=True)
class AffineRows:
    """MLX's form of a quantized matrix.

    packed: uint32 [rows, columns * bits / 32]; scales, biases: [rows, columns / 32], float16, or
    float32 where float16 cannot hold a bias.
    """

    packed: np.ndarray
    scales: np.ndarray
    biases: np.ndarray
    bits: int

    def take_rows(self, order: np.ndarray) -> AffineRows:
        """The same matrix with its rows in another order."""
        return AffineRows(
            self.packed[order], self.scales[order], self.biases[order], bits=self.bits
        )


def to_affine(rows: np.ndarray, kind: str) -> AffineRows:
    """Blocks as stored, uint8 [rows, blocks * block bytes], in MLX's affine form."""
    blocks = rows.reshape(rows.shape[0], -1, _BLOCK_BYTES[kind])
    scales = _float16(blocks[..., 0:2])
    if kind == "Q8_0":
        # Two's complement to offset binary: q + 128 flips the top bit.
        quants = blocks[..., 2:] ^ np.uint8(0x80)
        biases = _scaled(scales, -128)
    else:
        halves = blocks[..., 2:] if kind == "Q4_0" else blocks[..., 4:]
        # GGUF's byte j holds weights j and j + 16; MLX's holds weights 2j and 2j + 1.
        values = np.concatenate([halves & 0x0F, halves >> 4], axis=-1)
        quants = values[..., 0::2] | (values[..., 1::2] << 4)
        biases = _scaled(scales, -8) if kind == "Q4_0" else _float16(blocks[..., 2:4])
    packed = np.ascontiguousarray(quants).reshape(rows.shape[0], -1).view(np.uint32)
    return AffineRows(packed, scales.astype(biases.dtype), biases, BITS[kind])


def _float16(pairs: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pairs).view(np.float16)[..., 0]


def _scaled(scales: np.ndarray, factor: int) -> np.ndarray:
    exact = scales.astype(np.float32) * factor
    with np.errstate(over="ignore"):
        narrow = exact.astype(np.float16)
    return narrow if np.array_equal(narrow.astype(np.float32), exact) else exact
