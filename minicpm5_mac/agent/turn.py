"""One turn: replies and the calls between them, until the model answers or a limit ends it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from minicpm5_mac.agent.announced_call import NUDGE, announces_call
from minicpm5_mac.agent.approval_desk import ApprovalDesk
from minicpm5_mac.agent.calls import Calls
from minicpm5_mac.agent.prompt import build_request
from minicpm5_mac.agent.recording import ReplyRecorder
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.agent.streaming import stream_reply
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.engine.interface import Engine
from minicpm5_mac.events import (
    Answer,
    CallParsed,
    CallRejected,
    Event,
    FilesChanged,
    MessageSaved,
    Notice,
    ReplyEnd,
    StepEnded,
    StepStarted,
    TurnCause,
    Usage,
)

BYTES_PER_TOKEN = 3
"""Of program text and its output, on the low side: English has 3 to 4 a token."""
LEAST_RESULT_BYTES = 1024
RESERVED_TOKENS = 512
"""For the words around results, and the reply to them: the engine starts none without room."""

_LIMIT_WORDS: dict[TurnCause, str] = {
    "steps": "The turn was ended: it took {0.steps} replies without an answer.",
    "time": "The turn was ended: it took longer than {0.seconds:g} seconds.",
    "tokens": "The turn was ended: the model wrote {0.tokens:,} tokens without an answer.",
    "repeated_call": "The turn was ended: the model made the same call three times.",
}


@dataclass
class Said:
    """One reply. calls: in the order in which they were written, valid or not."""

    text: str
    calls: list[CallParsed | CallRejected]
    end: ReplyEnd


class Turn:
    """One turn of a session; `run` once. `cancel`, `cancel_call` and `desk` are for any thread.

    head: the last message that was stored, None as long as there is none.
    """

    def __init__(
        self,
        engine: Engine,
        store: ConversationStore,
        conversation: str,
        settings: SessionSettings,
        cancelled: threading.Event,
        toolbox: Toolbox | None,
    ) -> None:
        self.head: int | None = None
        self.desk = ApprovalDesk()
        self._engine = engine
        self._store = store
        self._conversation = conversation
        self._settings = settings
        self._cancelled = cancelled
        self._toolbox = toolbox
        self._calls: Calls | None = None
        self._began = time.monotonic()
        self._tokens = 0
        self._thinking_spent = 0

    def cancel(self) -> None:
        """End what runs and what waits; the engine is cancelled by the session."""
        self.desk.close()
        self.cancel_call()

    def cancel_call(self) -> None:
        """End the running call alone."""
        if self._calls is not None:
            self._calls.cancel()

    def run(
        self,
        path: tuple[StoredMessage, ...],
        *,
        shorten: bool = False,
        continued: StoredMessage | None = None,
    ) -> Iterator[Event]:
        """The reply to `path`, or more of `continued`, and all that follows; ends with ReplyEnd."""
        if continued is not None and continued.usage is not None:
            self._thinking_spent = continued.usage.thinking_tokens
        if self._toolbox is not None:
            yield from self._toolbox.prepare()
        if self._toolbox is None or not self._toolbox.tools:
            said = yield from self._reply(path, shorten=shorten, continued=continued)
            yield said.end
            return
        self._calls = Calls(
            self._toolbox, self._store, self._conversation, self.desk, self._cancelled
        )
        try:
            end = yield from self._steps(self._toolbox, path, shorten, continued)
        except BaseException:
            self._calls.close()
            raise
        changed = self._calls.close()
        if changed is not None:
            yield FilesChanged(changed.id, tuple(change.shown() for change in changed.changes))
        yield end

    def _steps(
        self,
        toolbox: Toolbox,
        path: tuple[StoredMessage, ...],
        shorten: bool,
        continued: StoredMessage | None,
    ) -> Generator[Event, None, ReplyEnd]:
        assert self._calls is not None
        nudged = False
        for number in itertools.count(1):
            yield StepStarted(number, toolbox.limits.steps)
            # In the middle of a turn nobody can be asked whether old turns may be left out.
            said = yield from self._reply(path, shorten=shorten or number > 1, continued=continued)
            continued = None
            end = said.end
            self._tokens += end.usage.generated_tokens
            self._thinking_spent = end.usage.thinking_tokens
            limit = self._limit_reached(toolbox, number)
            if end.finish in ("cancelled", "failed") or end.cause != "stop":
                # A reply that was cut by our own limit ends the turn in that limit's name.
                ours = limit in ("time", "tokens") and end.finish != "failed"
                mine = ours and not self._cancelled.is_set()
                end = self._ended_by(limit, end) if limit and mine else end
                yield from self._leave(said, limit or "")
                return end
            calls = [c for c in said.calls if getattr(c, "reason", "") != "inside_thinking"]
            if calls:
                if limit:
                    yield from self._leave(said, limit)
                    return self._ended_by(limit, end)
                yield StepEnded(number, end.usage)
                self._calls.room = _room(end.usage, len(calls))
                repeated = yield from self._run(self._calls, calls)
                if self._cancelled.is_set():
                    return ReplyEnd("cancelled", "cancelled", end.usage)
                if repeated:
                    return self._ended_by("repeated_call", end)
            elif not nudged and not limit and self._stopped_short(said):
                nudged = True
                yield StepEnded(number, end.usage)
                yield Notice("nudged", "The model announced a call and made none; it was told so.")
                yield self._save_nudge()
            else:
                return end
            path = self._store.messages.path(self._conversation, self.head)
        raise AssertionError("unreachable")

    def _reply(
        self,
        path: Sequence[StoredMessage],
        *,
        shorten: bool,
        continued: StoredMessage | None,
    ) -> Generator[Event, None, Said]:
        """One reply, stored as it comes; all its events but the last."""
        toolbox = self._toolbox
        request = build_request(
            path,
            self._settings,
            tools=toolbox.schemas if toolbox else (),
            thinking_spent=self._thinking_spent,
            shorten=shorten,
            continue_last=continued is not None,
        )
        limits = toolbox.limits if toolbox and toolbox.tools else None
        if limits is not None and limits.tokens is not None:
            left = max(1, limits.tokens - self._tokens)
            most = left if request.max_tokens is None else min(left, request.max_tokens)
            request = msgspec.structs.replace(request, max_tokens=most)
        recorder = ReplyRecorder(
            self._store,
            self._conversation,
            parent=continued.parent if continued else path[-1].id,
            continued=continued,
        )
        text: list[str] = []
        calls: list[CallParsed | CallRejected] = []
        end: ReplyEnd | None = None
        late = False
        try:
            events = stream_reply(self._engine, recorder, request, self._cancelled)
            with contextlib.closing(events):  # type: ignore[type-var]
                for event in events:
                    self.head = recorder.message or self.head
                    if limits and not late and self._seconds() > limits.seconds:
                        late = True
                        self._engine.cancel()
                    match event:
                        case ReplyEnd():
                            end = event
                            continue
                        case Answer():
                            text.append(event.text)
                        case CallParsed() | CallRejected():
                            calls.append(event)
                    yield event
        finally:
            self.head = recorder.message or self.head
        assert end is not None
        return Said("".join(text), calls, end)

    def _run(
        self, calls: Calls, made: list[CallParsed | CallRejected]
    ) -> Generator[Event, None, bool]:
        """Run the calls of a reply. Returns whether the same one came for the third time."""
        repeated = False
        for call in made:
            skip = "the user stopped." if self._cancelled.is_set() else ""
            if repeated:
                skip = "the same call came before it for the third time."
            for event in calls.handle(call, self.head, skip):
                if isinstance(event, MessageSaved):
                    self.head = event.message
                yield event
            repeated = repeated or calls.repeated
        return repeated

    def _leave(self, said: Said, limit: str) -> Iterator[Event]:
        """Tell the calls of a last reply that they were not run."""
        assert self._calls is not None
        reasons = {"steps": "the turn's replies are used up.", "time": "the time is up."}
        skip = reasons.get(limit, "the turn was ended.")
        for call in said.calls:
            if isinstance(call, CallParsed):
                for event in self._calls.handle(call, self.head, skip):
                    if isinstance(event, MessageSaved):
                        self.head = event.message
                    yield event

    def _stopped_short(self, said: Said) -> bool:
        """The reply says that it will do something, or did it inside of its thinking only."""
        in_thinking = bool(said.calls) and not said.text.strip()
        return in_thinking or announces_call(said.text)

    def _save_nudge(self) -> MessageSaved:
        parent = self.head
        message = self._store.messages.add(self._conversation, parent, "user", NUDGE)
        self.head = message
        versions = self._store.messages.siblings(self._conversation, message)
        return MessageSaved(self._conversation, message, "user", parent, versions)

    def _limit_reached(self, toolbox: Toolbox, number: int) -> TurnCause | None:
        limits = toolbox.limits
        if self._seconds() > limits.seconds:
            return "time"
        if limits.tokens is not None and self._tokens >= limits.tokens:
            return "tokens"
        return "steps" if number >= limits.steps else None

    def _seconds(self) -> float:
        waited = self._calls.waited if self._calls is not None else 0.0
        return time.monotonic() - self._began - waited

    def _ended_by(self, limit: TurnCause, end: ReplyEnd) -> ReplyEnd:
        assert self._toolbox is not None
        words = _LIMIT_WORDS[limit].format(self._toolbox.limits)
        return msgspec.structs.replace(end, finish="truncated", cause=limit, detail=words)


def _room(usage: Usage, calls: int) -> int | None:
    """Bytes that one of so many results may have; None where the context is not known.

    Half of what is left, so that there is room for the next replies. However many tokens they
    turn out to be, they fit: no byte is more than one, and columns of numbers come close to it.
    """
    if not usage.context_limit:
        return None
    left = max(0, usage.context_limit - usage.context_used)
    usual, certain = left // 2 * BYTES_PER_TOKEN, left - RESERVED_TOKENS
    return max(LEAST_RESULT_BYTES, min(usual, certain) // calls)
