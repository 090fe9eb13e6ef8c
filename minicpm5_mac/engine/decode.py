"""Decode: one token after another, the next one always under way.

As in mlx-lm's generate_step, the step for the next token is queued before the present one is
read, so the device never waits for Python. When `next` returns a token, the cache holds exactly
the prompt and all tokens returned; the queued one is dropped by `redirect` without a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from minicpm5_mac.engine.kv_state import KVState
from minicpm5_mac.engine.sampler import REPETITION_WINDOW, Processor, Sampler, ban

# mlx-lm clears MLX's buffer cache as often.
CLEAR_EVERY = 256


class Decode:
    """The running end of one reply.

    first: ids to feed before the first token, the last of the prompt. banned: see `ban`.
    """

    def __init__(
        self,
        model: Any,
        kv: KVState,
        sampler: Sampler,
        processors: Sequence[Processor] = (),
        *,
        first: Sequence[int],
        banned: frozenset[int] = frozenset(),
    ) -> None:
        self._model = model
        self._kv = kv
        self._sampler = sampler
        self._processors = list(processors)
        self._recent = mx.array(kv.ids[-REPETITION_WINDOW:], dtype=mx.uint32)
        self._banned = banned
        self._bias: mx.array | None = None
        self._count = 0
        self._queued = self._feed(first)

    def ban(self, ids: frozenset[int]) -> None:
        """These ids are not sampled from the next step that is queued."""
        self._banned, self._bias = ids, None

    def next(self) -> int:
        """The next token; the one after it is queued."""
        token = self._queued
        self._queued = self._step(token)
        mx.async_eval(self._queued)
        value = _as_int(token)
        self._kv.ids.append(value)
        self._count += 1
        if self._count % CLEAR_EVERY == 0:
            mx.clear_cache()
        return value

    def peek(self) -> int:
        """The queued token, waiting for it. It is not in the cache."""
        return _as_int(self._queued)

    def redirect(self, ids: Sequence[int]) -> None:
        """Drop the queued token and go on after `ids` instead."""
        self._queued = self._feed(ids)

    def _feed(self, ids: Sequence[int]) -> mx.array:
        queued = self._step(mx.array(list(ids), dtype=mx.uint32))
        mx.async_eval(queued)
        self._kv.ids.extend(ids)
        return queued

    def _step(self, tokens: mx.array) -> mx.array:
        logits = self._model(tokens[None], cache=self._kv.layers)[:, -1, :]
        if self._processors:
            recent = mx.concatenate([self._recent, tokens.astype(mx.uint32)])
            self._recent = recent[-REPETITION_WINDOW:]
            for process in self._processors:
                logits = process(self._recent, logits)
        if self._banned:
            if self._bias is None:
                self._bias = ban(self._banned, logits.shape[-1], logits.dtype)
            logits = logits + self._bias
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        return self._sampler(logprobs)


def _as_int(token: mx.array) -> int:
    value = token.item()
    assert isinstance(value, int)
    return value
