"""The KV cache of the one running conversation, and the ids that it holds: prefix reuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading ids are the same."""
    n = min(len(a), len(b))
    different = np.flatnonzero(np.asarray(a[:n]) != np.asarray(b[:n]))
    return int(different[0]) if different.size else n


class KVState:
    """Layers of a KV cache and, always in step with them, the ids fed so far.

    make: builds empty caches, one a layer, with mlx-lm's interface (`trim`, `is_trimmable`).
    """

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        self._make = make
        self.layers = make()
        self.ids: list[int] = []

    def reuse(self, prompt: Sequence[int]) -> int:
        """Keep what `prompt` shares with the cache; the number of ids that need no prefill.

        At least the prompt's last id is left to be fed: its logits are what decode starts from.
        Caches that cannot be trimmed (a sliding window) start anew instead.
        """
        keep = min(common_prefix(self.ids, prompt), len(prompt) - 1)
        surplus = len(self.ids) - keep
        if surplus == 0:
            return keep
        if keep == 0 or not all(layer.is_trimmable() for layer in self.layers):
            self.clear()
            return 0
        for layer in self.layers:
            layer.trim(surplus)
        del self.ids[keep:]
        return keep

    def clear(self) -> None:
        """Forget everything and free the memory."""
        self.layers = self._make()
        self.ids = []

    @property
    def nbytes(self) -> int:
        """Bytes that the cache's buffers take."""
        return sum(layer.nbytes for layer in self.layers)
