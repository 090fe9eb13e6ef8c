"""KV caches of one layer, plain and affine-quantized, with the interface that mlx-lm's models use.

They have the names and the saved form of mlx-lm's own (mlx_lm/models/cache.py, mlx-lm 0.32):
`mlx_lm.models.cache.save_prompt_cache` writes them, and a file of either can be read as the other.
Different from mlx-lm's: keys and values share one buffer, so that a step writes both at once; rows
are quantized as they are written, from the first on; and the saved state holds valid rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import mlx.core as mx
from mlx_lm.models import cache as mlx_lm_cache

from mlx_kernels.affine import BITS, GROUP_SIZES, AffineRows, KVRows

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


class KVCache:
    """Keys and values of one layer as they are: float32, float16 or bfloat16.

    offset: rows written and valid, the position of the next token.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._buffer: mx.array | None = None  # [K and V, B, heads, capacity, D]

    @property
    def keys(self) -> mx.array | None:
        """The whole buffer of keys [B, heads, capacity, D], or None before the first write."""
        return None if self._buffer is None else self._buffer[0]

    @property
    def values(self) -> mx.array | None:
        """The whole buffer of values, as `keys`."""
        return None if self._buffer is None else self._buffer[1]

    def append(self, rows: mx.array) -> None:
        """Write rows [2, B, heads, L, D], keys and then values, after the valid ones."""
        self._buffer = appended(self._buffer, rows, self.offset)
        self.offset += rows.shape[-2]

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Write new rows [B, heads, L, D]; all keys and all values, [B, heads, offset, D]."""
        self.append(mx.stack([keys, values]))
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """All valid keys and values, [B, heads, offset, D], as views of the buffer."""
        assert self._buffer is not None, "nothing was written"
        return self._buffer[0, :, :, : self.offset], self._buffer[1, :, :, : self.offset]

    def rows(self) -> tuple[KVRows, KVRows]:
        """As keys_and_values, in the form that this package's attention takes."""
        return self.keys_and_values()

    @classmethod
    def merge(cls, caches: Sequence[KVCache]) -> Any:
        """mlx-lm's BatchKVCache of these, padded on the left."""
        return mlx_lm_cache.BatchKVCache.merge(caches)

    @property
    def state(self) -> tuple[Any, ...]:
        """(keys, values, offset) as mlx-lm saves them; the arrays hold valid rows only."""
        if self._buffer is None:
            return None, None, 0
        return (*self.keys_and_values(), self.offset)

    @state.setter
    def state(self, state: Sequence[Any]) -> None:
        keys, values, self.offset = state
        self._buffer = None if keys is None else mx.stack([keys, values])

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
        self.offset -= n
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
        return self._buffer is None

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer, with its spare rows."""
        return 0 if self._buffer is None else self._buffer.nbytes


class QuantizedKVCache:
    """Keys and values of one layer, affine-quantized row by row as they are written.

    bits: 4 or 8. group_size: 32 or 64 values along D; scales and biases have the dtype of the
    written rows. offset: rows written and valid. The numbers are those of `mx.quantize`.
    """

    def __init__(self, group_size: int = 64, bits: int = 8) -> None:
        if bits not in BITS or group_size not in GROUP_SIZES:
            raise ValueError(
                f"a KV cache has {BITS} bits in groups of {GROUP_SIZES} values, "
                f"not {bits} bits in groups of {group_size}"
            )
        self.group_size = group_size
        self.bits = bits
        self.offset = 0
        self._words: mx.array | None = None  # [K and V, B, heads, capacity, D * bits / 32]
        self._affine: mx.array | None = None  # [scales and biases, K and V, B, heads, capacity, g]

    @property
    def keys(self) -> Triple | None:
        """The whole buffer of keys, [B, heads, capacity, .] each; None before the first write."""
        return None if self._words is None else self._triple(0, self._words.shape[-2])

    @property
    def values(self) -> Triple | None:
        """The whole buffer of values, as `keys`."""
        return None if self._words is None else self._triple(1, self._words.shape[-2])

    def append(self, rows: mx.array) -> None:
        """Quantize and write rows [2, B, heads, L, D], keys and then values."""
        if rows.shape[-1] % self.group_size:
            raise ValueError(
                f"heads of {rows.shape[-1]} values do not divide into groups of {self.group_size}"
            )
        words, scales, biases = mx.quantize(rows, group_size=self.group_size, bits=self.bits)
        self.append_quantized(words, mx.stack([scales, biases]))

    def append_quantized(self, words: mx.array, affine: mx.array) -> None:
        """Write rows that are quantized already.

        words: uint32 [2, B, heads, L, D * bits / 32], keys and then values. affine: scales and then
        biases, [2, 2, B, heads, L, D / group_size].
        """
        self._words = appended(self._words, words, self.offset)
        self._affine = appended(self._affine, affine, self.offset)
        self.offset += words.shape[-2]

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Triple, Triple]:
        """Write new rows [B, heads, L, D]; all keys and values as words, scales and biases."""
        self.append(mx.stack([keys, values]))
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[Triple, Triple]:
        """All valid keys and values, [B, heads, offset, .] each, as views of the buffers."""
        return self._triple(0, self.offset), self._triple(1, self.offset)

    def rows(self) -> tuple[KVRows, KVRows]:
        """As keys_and_values, in the form that this package's attention takes."""
        keys, values = (
            AffineRows(*triple, self.group_size, self.bits) for triple in self.keys_and_values()
        )
        return keys, values

    def _triple(self, which: int, stop: int) -> Triple:
        assert self._words is not None, "nothing was written"
        assert self._affine is not None
        words, affine = self._words[which, :, :, :stop], self._affine[:, which, :, :, :stop]
        return words, affine[0], affine[1]

    @property
    def state(self) -> tuple[Any, ...]:
        """(keys, values, offset, group_size, bits) as mlx-lm saves them; valid rows only."""
        if self._words is None:
            return None, None, 0, self.group_size, self.bits
        return (*self.keys_and_values(), self.offset, self.group_size, self.bits)

    @state.setter
    def state(self, state: Sequence[Any]) -> None:
        keys, values, self.offset, self.group_size, self.bits = state
        if keys is None:
            self._words = self._affine = None
            return
        words, scales, biases = (mx.stack([k, v]) for k, v in zip(keys, values, strict=True))
        self._words, self._affine = words, mx.stack([scales, biases])

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
        self.offset -= n
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
        return self._words is None

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, with their spare rows."""
        if self._words is None or self._affine is None:
            return 0
        return self._words.nbytes + self._affine.nbytes


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
