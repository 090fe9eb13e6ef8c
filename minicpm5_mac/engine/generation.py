"""One reply: prefill, decode, the thinking budget and the reply parser, woven together.

Everything that happens becomes an event; the ids that were really fed and generated are kept for
the conversation, and the KV cache and its ids are in step at every yield.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import mlx.core as mx

from minicpm5_mac.engine.decode import Decode
from minicpm5_mac.engine.kv_state import KVState
from minicpm5_mac.engine.prefill import Prefill
from minicpm5_mac.engine.prompt import Prompt
from minicpm5_mac.engine.repetition import RepetitionWatch
from minicpm5_mac.engine.sampler import build_processors, build_sampler
from minicpm5_mac.engine.signals import Signals
from minicpm5_mac.engine.thinking import (
    Cause,
    Place,
    ThinkingBudget,
    closing_ids,
    room_for_thinking,
)
from minicpm5_mac.events import (
    Event,
    Finish,
    Notice,
    Progress,
    PromptProgress,
    ReplyEnd,
    ThinkingClosed,
    Usage,
)
from minicpm5_mac.messages import TurnIds
from minicpm5_mac.model.loading import LoadedModel
from minicpm5_mac.model.prompt import thinking_is_open
from minicpm5_mac.reply.parser import ReplyParser
from minicpm5_mac.request import ReplyRequest, Sampling

PROGRESS_SECONDS = 0.2

End = Literal["stop", "max_tokens", "context", "loop", "cancelled"]


@dataclass
class Counts:
    """Running counts of a reply, for its Usage. Times are time.monotonic()."""

    started: float
    cached: int = 0
    prefilled: int = 0
    generated: int = 0
    fed: int = 0
    prompt_seconds: float = 0.0
    first_token: float | None = None
    last_token: float = 0.0


@dataclass
class Generation:
    """One reply to one prompt. Iterate `run()` to its end, or stop in between: nothing breaks.

    sampling: with all defaults filled in. context_limit: tokens.
    """

    loaded: LoadedModel
    kv: KVState
    prefill: Prefill
    request: ReplyRequest
    prompt: Prompt
    sampling: Sampling
    context_limit: int
    signals: Signals = field(default_factory=Signals)

    def __post_init__(self) -> None:
        tokenizer = self.loaded.encoder.tokenizer
        self._tokenizer = tokenizer
        self._counts = Counts(started=time.monotonic())
        self._generated: list[int] = []
        self._most = self.context_limit - len(self.prompt.ids)
        if self.request.max_tokens is not None:
            self._most = min(self._most, self.request.max_tokens)
        self._tags = frozenset(
            i for i in (tokenizer.think_open, tokenizer.think_close) if i is not None
        )
        ids, written = self.prompt.ids, self.prompt.written
        opener, said = ids[: len(ids) - written], ids[len(ids) - written :]
        self._parser = ReplyParser(self.request.tools, thinking_open=self._is_open(opener))
        self._text = tokenizer.detokenizer()
        # A reply that goes on is read on from where it stopped, blanks that were held back and
        # half a character included; what it said before is not said again.
        for token in said:
            self._parser.feed(self._text.step(token))
        self._thinking_open = self._is_open(ids)
        self._watch = RepetitionWatch()
        self._budget = ThinkingBudget(
            self.request.thinking, self.request.thinking_spent, room_for_thinking(self._most)
        )
        self._stops = tokenizer.end_ids | self.loaded.encoder.opens_turns

    def _is_open(self, ids: Sequence[int]) -> bool:
        """A prompt of these ids ends inside a think block."""
        tokenizer = self._tokenizer
        return bool(self._tags) and thinking_is_open(
            ids, tokenizer.think_open, tokenizer.think_close
        )

    def run(self) -> Iterator[Event]:
        """All events of the reply; the last one is ReplyEnd."""
        mx.reset_peak_memory()
        yield from self._read_prompt()
        if self.signals.cancelled:
            yield self._end("cancelled", "cancelled")
            return
        end: End = yield from self._write()
        if end == "stop":
            yield from self._parser.feed(self._text.finish())
        yield from self._parser.close()
        finish: Finish = "truncated"
        if end == "cancelled":
            finish = "cancelled"
        elif end == "stop":
            finish = self._parser.finish or "truncated"
        yield self._end(finish, end)

    def _read_prompt(self) -> Iterator[Event]:
        ids = self.prompt.ids
        counts = self._counts
        counts.cached = self.kv.reuse(ids)
        new = ids[counts.cached :]
        counts.prefilled = len(new)
        yield PromptProgress(counts.cached, 0, len(new), 0.0)
        for done in self.prefill.feed(self.kv, new[:-1]):
            seconds = time.monotonic() - counts.started
            yield PromptProgress(counts.cached, done, len(new), done / max(seconds, 1e-9))
            if self.signals.cancelled:
                return

    def _write(self) -> Iterator[Event]:
        counts = self._counts
        # Where no block is open the model may open one: not where its budget is spent, and not in
        # a reply that goes on after its thinking.
        spent = self.request.thinking is not None and (
            self.request.thinking <= self.request.thinking_spent
        )
        banned = not self._thinking_open and (spent or self.prompt.written > 0)
        decode = Decode(
            self.loaded.model,
            self.kv,
            build_sampler(self.sampling),
            build_processors(self.sampling),
            first=self.prompt.ids[-1:],
            banned=self._tags if banned else frozenset(),
        )
        reported = counts.started
        while counts.generated < self._most:
            if self.signals.cancelled:
                return "cancelled"
            token = decode.next()
            now = time.monotonic()
            if counts.first_token is None:
                counts.first_token = now
                counts.prompt_seconds = now - counts.started
            counts.last_token = now
            if token in self._stops:
                return "stop"
            counts.generated += 1
            self._generated.append(token)
            text = self._text.step(token)
            was_thinking = self._parser.thinking
            yield from self._parser.feed(text)
            looping = self._watch.feed(token, text)
            if self._parser.thinking:
                if was_thinking:
                    self._budget.count()
                yield from self._watch_thinking(decode, looping)
            elif was_thinking:
                self._leave_thinking(decode)
                yield ThinkingClosed("model", self._budget.tokens, 0)
            elif looping:
                yield Notice("loop", "The reply went round in circles and was stopped.")
                return "loop"
            if now - reported >= PROGRESS_SECONDS:
                reported = now
                yield Progress(self.usage())
        full = self.request.max_tokens is None or self._most < self.request.max_tokens
        return "context" if full else "max_tokens"

    def _watch_thinking(self, decode: Decode, looping: bool) -> Iterator[Event]:
        if looping:
            self._budget.ask("loop")
        if self.signals.answer_now:
            self._budget.ask("answer_now")
        parser = self._parser
        place = Place(not self._text.pending, parser.at_line_end, parser.in_call)
        cause = self._budget.close_now(place)
        if cause is None or decode.peek() == self._tokenizer.think_close:
            return  # not due, or the model is closing the block itself
        yield from self._close_thinking(decode, cause)

    def _close_thinking(self, decode: Decode, cause: Cause) -> Iterator[Event]:
        left = self._text.finish()
        yield from self._parser.feed(left)
        ids, text = closing_ids(self._tokenizer, at_line_start=self._parser.at_line_end)
        self._leave_thinking(decode)
        decode.redirect(ids)
        self._generated += ids
        self._counts.fed += len(ids)
        yield from self._parser.feed(text)
        yield ThinkingClosed(cause, self._budget.tokens, len(ids))

    def _leave_thinking(self, decode: Decode) -> None:
        """From here on the model may neither open nor close a block in this turn."""
        decode.ban(self._tags)
        self._watch.reset()

    def usage(self) -> Usage:
        """Counts and rates so far."""
        counts = self._counts
        decode_seconds = counts.last_token - (counts.first_token or counts.last_token)
        return Usage(
            prompt_tokens=len(self.prompt.ids),
            cached_tokens=counts.cached,
            prefilled_tokens=counts.prefilled,
            generated_tokens=counts.generated,
            fed_tokens=counts.fed,
            thinking_tokens=self._budget.tokens,
            thinking_budget=self.request.thinking,
            prompt_rate=counts.prefilled / counts.prompt_seconds if counts.prompt_seconds else 0.0,
            decode_rate=(counts.generated - 1) / decode_seconds if decode_seconds > 0 else 0.0,
            time_to_first_token=counts.prompt_seconds,
            context_used=len(self.kv.ids),
            context_limit=self.context_limit,
            peak_memory=mx.get_peak_memory(),
        )

    def _end(self, finish: Finish, cause: End) -> ReplyEnd:
        start, written = self.prompt.start, self.prompt.written
        split = len(self.prompt.ids) - written
        ids = TurnIds(
            fingerprint=self.prompt.fingerprint,
            whole=self.prompt.whole,
            prompt=self.prompt.ids[start:split],
            generated=(*self.prompt.ids[split:], *self._generated),
        )
        return ReplyEnd(finish, cause, self.usage(), ids)
