"""The newest rows of a layer's cache, before they are put into its buffers.

MLX gives a kernel its inputs to read only and makes its outputs anew, so no launch can write a row
into a buffer. It can return the few newest rows: each step's launch takes the block that the step
before left and returns it with the new rows after them. Once in OPEN_ROWS rows the block is closed:
MLX writes it into the buffer, in place.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

# Rows that a block has room for. Every step copies those that are there, so few; every closing is a
# launch or two, so not very few.
OPEN_ROWS = 16


@dataclass(frozen=True)
class OpenBlock:
    """Rows after those of a cache's buffers, in arrays that no one changes.

    arrays: in the layout of the cache's buffers, row-contiguous, with room for OPEN_ROWS rows:
    [2, B, heads, OPEN_ROWS, D], keys and then values; or quantized, words uint32 [2, B, heads,
    OPEN_ROWS, D * bits / 32] and scales and biases [2, 2, B, heads, OPEN_ROWS, D / group_size].
    rows: how many of them count; what is in the others is not to be read.
    """

    arrays: tuple[mx.array, ...]
    rows: int

    def used(self) -> tuple[mx.array, ...]:
        """The arrays with the rows that count, as views."""
        return tuple(array[..., : self.rows, :] for array in self.arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, with their spare rows."""
        return sum(array.nbytes for array in self.arrays)
