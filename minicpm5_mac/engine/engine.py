"""The engine in this process: one loaded model that streams replies as events."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import mlx.core as mx

from minicpm5_mac.engine.context import Cut
from minicpm5_mac.engine.generation import Generation
from minicpm5_mac.engine.kv_state import KVState
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.prefill import Prefill
from minicpm5_mac.engine.prompt import Prompt, build_prompt, shorten
from minicpm5_mac.engine.sampler import with_defaults
from minicpm5_mac.engine.signals import Signals
from minicpm5_mac.events import (
    ContextFull,
    Event,
    HistoryShortened,
    Notice,
    ReplyEnd,
)
from minicpm5_mac.failure import Failure
from minicpm5_mac.model.loading import LoadedModel
from minicpm5_mac.request import ReplyRequest, Sampling

log = logging.getLogger(__name__)

# A prompt that leaves fewer tokens for the reply than this does not fit; for tiny contexts an
# eighth of them.
LEAST_REPLY = 256


@dataclass
class _Loaded:
    model: LoadedModel
    kv: KVState
    prefill: Prefill
    context_limit: int


class LocalEngine:
    """See `engine.interface.Engine`: the model lives in this process, in the calling thread."""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self._loaded: _Loaded | None = None
        self._signals = Signals()

    def start(self) -> Iterator[Event]:
        """See `Engine.start`."""
        from minicpm5_mac.engine.startup import start_model

        self.close()
        loaded = yield from start_model(self.options)
        if loaded is not None:
            model, limit = loaded
            self._loaded = _Loaded(model, KVState(model.make_cache), Prefill(model.model), limit)

    def reply(self, request: ReplyRequest, signals: Signals | None = None) -> Iterator[Event]:
        """See `Engine.reply`. signals: what `cancel` and `answer_now` set, if the caller has it."""
        # Set before the first event is asked for: a cancel may come earlier than that.
        self._signals = signals or Signals()
        return self._stream(request, self._signals)

    def _stream(self, request: ReplyRequest, signals: Signals) -> Iterator[Event]:
        if self._loaded is None:
            yield ReplyEnd("failed", "error", detail="The model is not loaded.")
            return
        try:
            yield from self._reply(self._loaded, request, signals)
        except Failure as failure:
            yield ReplyEnd("failed", "error", detail=str(failure))
        except (RuntimeError, ValueError, MemoryError, OverflowError, TypeError) as error:
            # The cache may be half written; what it held is read again from the kept ids.
            log.exception("a reply failed")
            self._loaded.kv.clear()
            yield ReplyEnd("failed", "error", detail=f"{type(error).__name__}: {error}")

    def cancel(self) -> None:
        """See `Engine.cancel`."""
        self._signals.cancelled = True

    def answer_now(self) -> None:
        """See `Engine.answer_now`."""
        self._signals.answer_now = True

    def stopped(self) -> None:
        """See `Engine.stopped`: this one lives as long as its process does."""

    def close(self) -> None:
        """See `Engine.close`."""
        self.cancel()
        if self._loaded is not None:
            self._loaded = None
            mx.clear_cache()

    def _reply(self, loaded: _Loaded, request: ReplyRequest, signals: Signals) -> Iterator[Event]:
        encoder = loaded.model.encoder
        limit = loaded.context_limit
        sampling = with_defaults(request.sampling, loaded.model.generation_config)
        yield from _notices(request, sampling, encoder.tokenizer.has_thinking)
        prompt = build_prompt(encoder, request)
        most = limit - min(LEAST_REPLY, limit // 8)
        if len(prompt.ids) > most:
            fits = _shortened(loaded, request, most)
            if isinstance(fits, Failure) or request.when_full == "stop" or request.continue_last:
                can_shorten = not isinstance(fits, Failure) and not request.continue_last
                yield ContextFull(len(prompt.ids), limit, can_shorten)
                detail = str(fits) if isinstance(fits, Failure) else ""
                yield ReplyEnd("failed", "context_full", detail=detail)
                return
            shorter, cut = fits
            yield HistoryShortened(
                cut.without_reasoning, cut.left_out, len(prompt.ids), len(shorter.ids)
            )
            prompt = shorter
        yield from Generation(
            loaded.model, loaded.kv, loaded.prefill, request, prompt, sampling, limit, signals
        ).run()


def _shortened(loaded: _Loaded, request: ReplyRequest, most: int) -> tuple[Prompt, Cut] | Failure:
    try:
        return shorten(loaded.model.encoder, request, most, loaded.context_limit)
    except Failure as failure:
        return failure


def _notices(request: ReplyRequest, sampling: Sampling, has_thinking: bool) -> Iterator[Event]:
    if request.thinking and not has_thinking:
        yield Notice(
            "no_thinking",
            "This model has no thinking: its vocabulary lacks the tags. It answers directly.",
            once=True,
        )
    if has_thinking and sampling.temperature == 0 and request.thinking != 0:
        yield Notice(
            "greedy_thinking",
            "Temperature 0 makes this model think in circles; it was made for temperature 1.0, "
            "top_p 0.95.",
            once=True,
        )
