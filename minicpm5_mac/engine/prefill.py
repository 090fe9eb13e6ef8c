"""Prefill: feed a prompt to the cache in chunks that take about a second at most.

A chunk is what a cancel has to wait for and what a progress bar moves by, so its size follows the
speed that this machine showed, instead of a fixed number of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx

from minicpm5_mac.engine.kv_state import KVState

# Small, for nothing is known of the machine yet: a CPU may read 14 tokens a second.
FIRST_CHUNK = 32
SMALLEST_CHUNK = 8
# mlx-lm's prefill_step_size; larger chunks are no faster and need more memory.
LARGEST_CHUNK = 2048
# A larger chunk is never slower a token until attention outgrows the rest, so what a small one took
# says enough of the next; not all at once, for the first may have been lucky.
LARGEST_GROWTH = 8
# Seconds a chunk should take: below the second that is promised, for the machine slows down as
# the context grows.
CHUNK_SECONDS = 0.6


class Prefill:
    """Feeds prompts; remembers the machine's rate from one to the next."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._chunk = FIRST_CHUNK

    def feed(self, kv: KVState, ids: Sequence[int]) -> Iterator[int]:
        """Feed all of `ids`, yielding how many are done after each chunk.

        Stopping between two steps leaves cache and ids in step.
        """
        done = 0
        while done < len(ids):
            part = list(ids[done : done + self._chunk])
            started = time.monotonic()
            # Logits are never evaluated here, so the output projection costs nothing.
            self._model(mx.array(part)[None], cache=kv.layers)
            mx.eval([layer.state for layer in kv.layers])
            kv.ids.extend(part)
            done += len(part)
            self._adapt(len(part), time.monotonic() - started)
            mx.clear_cache()
            yield done

    def _adapt(self, tokens: int, seconds: float) -> None:
        if tokens < self._chunk and seconds < CHUNK_SECONDS:
            return  # a short last chunk that was quick says little about a full one
        wanted = tokens * CHUNK_SECONDS / max(seconds, 1e-6)
        wanted = int(min(wanted, LARGEST_GROWTH * self._chunk, LARGEST_CHUNK))
        # Multiples of 32 rows suit the matrix kernels' tiles.
        self._chunk = max(SMALLEST_CHUNK, wanted if wanted < 32 else wanted // 32 * 32)
