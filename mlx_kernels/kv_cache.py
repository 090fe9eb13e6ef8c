"""KV caches of one layer, plain and affine-quantized, with the interface that mlx-lm's models use.

They have the names and the saved form of mlx-lm's own (mlx_lm/models/cache.py, mlx-lm 0.32):
`mlx_lm.models.cache.save_prompt_cache` writes them, and a file of either can be read as the other.
Different from mlx-lm's: keys and values share one buffer, so that a step writes both at once; rows
are quantized as they are written, from the first on; the newest may be in an open block, which a
kernel has left; and the saved state holds valid rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import mlx.core as mx
from mlx_lm.models import cache as mlx_lm_cache

from mlx_kernels.affine import BITS, GROUP_SIZES, AffineRows, KVRows
from mlx_kernels.open_block import OPEN_ROWS, OpenBlock

# Rows that a buffer grows by, as in mlx-lm.
STEP = 256

# A quantized array as mlx-lm passes it: words, scales, biases.
Triple = tuple[mx.array, mx.array, mx.array]


def appended(buffer: mx.array | None, rows: mx.array, used: int) -> mx.array:
    """The buffer [..., capacity, X] with rows [..., L, X] after its first `used` rows.

    Written in place where there is room; otherwise the buffer is made anew, to the next multiple of
    STEP rows.
    """
    end = used + rows.shape[-2]
    if buffer is not None and end <= buffer.shape[-2]:
        buffer[..., used:end, :] = rows
        return buffer
    spare = mx.zeros((*rows.shape[:-2], -end % STEP, rows.shape[-1]), rows.dtype)
    parts = [rows, spare] if buffer is None or not used else [buffer[..., :used, :], rows, spare]
    return mx.concatenate(parts, axis=-2)


class LayerRows:
    """Rows of one layer, closed and open, whatever they hold.

    Closed rows are in buffers, which grow in steps and are written in place; rows that a kernel has
    left are after them, in the open block (see open_block). All that looks at whole buffers closes
    the block first.
    """

    state: Any  # as mlx-lm saves it

    def __init__(self) -> None:
        self._buffers: tuple[mx.array, ...] = ()  # [..., capacity, X] each
        self._closed = 0
        self._open: OpenBlock | None = None

    @property
    def offset(self) -> int:
        """Rows written and valid, the position of the next token."""
        return self._closed + (self._open.rows if self._open else 0)

    def block_for(self, rows: int) -> OpenBlock | None:
        """The open block, for a launch that adds `rows` rows to it; None if there is none yet.

        A block without room for them is closed; what comes then is one of no rows. Raises
        ValueError for more rows than OPEN_ROWS.
        """
        if rows > OPEN_ROWS:
            raise ValueError(f"{rows} rows do not fit into an open block of {OPEN_ROWS}")
        block = self._open
        if block is not None and block.rows + rows > OPEN_ROWS:
            self.close()
            return OpenBlock(block.arrays, 0)
        return block

    def keep_open(self, block: OpenBlock) -> None:
        """Take what a launch has made of the block that `block_for` gave."""
        self._open = block

    def close(self) -> None:
        """Put the rows of the open block into the buffers."""
        if self._open is not None:
            rows, self._open = self._open.used(), None
            self._append(rows)

    def closed_rows(self) -> tuple[KVRows, KVRows]:
        """Keys and values that are in the buffers, [B, heads, closed, D] each, as views of them."""
        raise NotImplementedError

    def rows(self) -> tuple[KVRows, KVRows]:
        """All valid keys and values, [B, heads, offset, D] each, in the buffers."""
        self.close()
        return self.closed_rows()

    def rows_and_block(self) -> tuple[KVRows, KVRows, OpenBlock | None]:
        """Keys and values that are in the buffers, and the block of those after them, if any are.

        There is at least one row in the buffers, for no kernel takes an array of none.
        """
        if not self._closed:
            self.close()
        block = self._open if self._open is not None and self._open.rows else None
        return *self.closed_rows(), block

    def _append(self, rows: Sequence[mx.array]) -> None:
        """Write rows [..., L, X], one array for each buffer, after the valid ones."""
        self.close()
        buffers = self._buffers or (None,) * len(rows)
        self._buffers = tuple(
            appended(buffer, new, self._closed) for buffer, new in zip(buffers, rows, strict=True)
        )
        self._closed += rows[0].shape[-2]

    @classmethod
    def from_state(cls, state: Sequence[Any]) -> Self:
        """A cache of a saved state."""
        cache = cls()
        cache.state = state
        return cache

    def is_trimmable(self) -> bool:
        """Always: rows at the end can be forgotten."""
        return True

    def trim(self, n: int) -> int:
        """Forget the last n rows (all, if there are fewer); how many were forgotten."""
        n = min(self.offset, n)
        left = self.offset - n
        if self._open is not None and left >= self._closed:
            self._open = replace(self._open, rows=left - self._closed)
        else:
            self._closed, self._open = left, None
        return n

    def make_mask(
        self, n: int, return_array: bool = False, window_size: int | None = None
    ) -> mx.array | str | None:
        """The mask of n new rows after the valid ones, as mlx-lm's models ask for it."""
        return mlx_lm_cache.create_attention_mask(
            n, offset=self.offset, return_array=return_array, window_size=window_size
        )

    def size(self) -> int:
        """Valid rows."""
        return self.offset

    def empty(self) -> bool:
        """Whether nothing was ever written."""
        return not self._buffers and self._open is None

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers and of the open block, with their spare rows."""
        block = self._open.nbytes if self._open else 0
        return sum(buffer.nbytes for buffer in self._buffers) + block


class KVCache(LayerRows):
    """Keys and values of one layer as they are: float32, float16 or bfloat16.

    Its one buffer is [2, B, heads, capacity, D], keys and then values.
    """

    @property
    def keys(self) -> mx.array | None:
        """The whole buffer of keys [B, heads, capacity, D], or None before the first write."""
        self.close()
        return self._buffers[0][0, :] if self._buffers else None

    @property
    def values(self) -> mx.array | None:
        """The whole buffer of values, as `keys`."""
        self.close()
        return self._buffers[0][1, :] if self._buffers else None

    def append(self, rows: mx.array) -> None:
        """Write rows [2, B, heads, L, D], keys and then values, after the valid ones."""
        self._append([rows])

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Write new rows [B, heads, L, D]; all keys and all values, [B, heads, offset, D]."""
        self.append(mx.stack([keys, values]))
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """All valid keys and values, [B, heads, offset, D], as views of the buffer."""
        self.close()
        return self.closed_rows()

    def closed_rows(self) -> tuple[mx.array, mx.array]:
        """See LayerRows."""
        assert self._buffers, "nothing was written"
        # With slices beside the number: [0] alone is a gather to MLX, and copies.
        keys, values = (self._buffers[0][which, :, :, : self._closed] for which in (0, 1))
        return keys, values

    @classmethod
    def merge(cls, caches: Sequence[KVCache]) -> Any:
        """mlx-lm's BatchKVCache of these, padded on the left."""
        return mlx_lm_cache.BatchKVCache.merge(caches)

    @property
    def state(self) -> tuple[Any, ...]:
        """(keys, values, offset) as mlx-lm saves them; the arrays hold valid rows only."""
        if self.empty():
            return None, None, 0
        return (*self.keys_and_values(), self.offset)

    @state.setter
    def state(self, state: Sequence[Any]) -> None:
        keys, values, self._closed = state
        self._open, self._buffers = None, ()
        if keys is not None:
            self._buffers = (mx.stack([keys, values]),)


class QuantizedKVCache(LayerRows):
    """Keys and values of one layer, affine-quantized row by row as they are written.

    bits: 4 or 8. group_size: 32 or 64 values along D; scales and biases have the dtype of the
    written rows. The numbers are those of `mx.quantize`. Its buffers are words [2, B, heads,
    capacity, D * bits / 32], keys and then values, and scales and biases [2, 2, B, heads, capacity,
    D / group_size], scales and then biases of keys and then values.
    """

    def __init__(self, group_size: int = 64, bits: int = 8) -> None:
        if bits not in BITS or group_size not in GROUP_SIZES:
            raise ValueError(
                f"a KV cache has {BITS} bits in groups of {GROUP_SIZES} values, "
                f"not {bits} bits in groups of {group_size}"
            )
        super().__init__()
        self.group_size = group_size
        self.bits = bits

    @property
    def keys(self) -> Triple | None:
        """The whole buffer of keys, [B, heads, capacity, .] each; None before the first write."""
        return self._whole(0)

    @property
    def values(self) -> Triple | None:
        """The whole buffer of values, as `keys`."""
        return self._whole(1)

    def _whole(self, which: int) -> Triple | None:
        self.close()
        return self._triple(which, self._buffers[0].shape[-2]) if self._buffers else None

    def append(self, rows: mx.array) -> None:
        """Quantize and write rows [2, B, heads, L, D], keys and then values."""
        if rows.shape[-1] % self.group_size:
            raise ValueError(
                f"heads of {rows.shape[-1]} values do not divide into groups of {self.group_size}"
            )
        words, scales, biases = mx.quantize(rows, group_size=self.group_size, bits=self.bits)
        self._append([words, mx.stack([scales, biases])])

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Triple, Triple]:
        """Write new rows [B, heads, L, D]; all keys and values as words, scales and biases."""
        self.append(mx.stack([keys, values]))
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[Triple, Triple]:
        """All valid keys and values, [B, heads, offset, .] each, as views of the buffers."""
        self.close()
        return self._triple(0, self._closed), self._triple(1, self._closed)

    def closed_rows(self) -> tuple[AffineRows, AffineRows]:
        """See LayerRows."""
        keys, values = (
            AffineRows(*self._triple(which, self._closed), self.group_size, self.bits)
            for which in (0, 1)
        )
        return keys, values

    def _triple(self, which: int, stop: int) -> Triple:
        assert self._buffers, "nothing was written"
        words, affine = self._buffers
        scales, biases = (affine[part, which, :, :, :stop] for part in (0, 1))
        return words[which, :, :, :stop], scales, biases

    @property
    def state(self) -> tuple[Any, ...]:
        """(keys, values, offset, group_size, bits) as mlx-lm saves them; valid rows only."""
        if self.empty():
            return None, None, 0, self.group_size, self.bits
        return (*self.keys_and_values(), self.offset, self.group_size, self.bits)

    @state.setter
    def state(self, state: Sequence[Any]) -> None:
        keys, values, self._closed, self.group_size, self.bits = state
        self._open, self._buffers = None, ()
        if keys is not None:
            words, scales, biases = (mx.stack([k, v]) for k, v in zip(keys, values, strict=True))
            self._buffers = words, mx.stack([scales, biases])


def load_prompt_cache(file: str) -> list[Any]:
    """The caches of a file that mlx-lm's `save_prompt_cache` wrote, from either's caches.

    Plain and quantized ones become this module's; others (a sliding window's) stay mlx-lm's.
    """
    ours = {"KVCache": KVCache, "QuantizedKVCache": QuantizedKVCache}
    loaded: list[Any] = list(mlx_lm_cache.load_prompt_cache(file))
    return [
        ours[name].from_state(cache.state) if (name := type(cache).__name__) in ours else cache
        for cache in loaded
    ]
