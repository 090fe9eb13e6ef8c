"""A reply on its way into the store: saved as it streams, whatever happens to the process."""

from __future__ import annotations

import threading

from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import (
    Answer,
    CallParsed,
    CallStarted,
    Event,
    MessageSaved,
    Notice,
    Reasoning,
    ReplyEnd,
)
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall

FLUSH_SECONDS = 0.5
"""Text waits at most this long before it is on disk."""


class ReplyRecorder:
    """Saves one reply. It has no row in the store before there is something to keep.

    message: the id of the stored reply, None while nothing has been kept.

    A store that fails costs the record and a notice, never the reply on the screen.
    """

    def __init__(
        self,
        store: ConversationStore,
        conversation: str,
        parent: int | None,
        continued: StoredMessage | None = None,
    ) -> None:
        """Below `parent`, a new reply; with `continued`, that reply goes on in its own place."""
        self.message: int | None = None
        self._messages = store.messages
        self._conversation = conversation
        self._parent = parent
        self._continued = continued
        self._content = [continued.content] if continued else []
        self._reasoning = [continued.reasoning] if continued else []
        self._calls: list[ToolCall] = list(continued.tool_calls) if continued else []
        self._lock = threading.Lock()
        self._unsaved = False
        self._ended = threading.Event()
        self._flusher: threading.Thread | None = None
        self._problem: Failure | None = None

    def record(self, event: Event) -> tuple[Event, ...]:
        """Keep what an event brings. Returns events to show before it."""
        match event:
            case Answer() | Reasoning() | CallParsed():
                self._keep(event)
            case CallStarted():
                pass
            case _:
                return self._complaint()
        return (*self._begun(), *self._complaint())

    def finish(self, end: ReplyEnd) -> tuple[Event, ...]:
        """Keep how it ended. A reply that failed before its first word leaves no trace."""
        self._ended.set()
        if self._flusher is not None:
            self._flusher.join()
        events: tuple[Event, ...] = ()
        if self.message is None and end.finish in ("complete", "truncated"):
            events = self._begun()
        if self.message is not None:
            try:
                self._messages.finish_reply(self.message, *self._kept(), end)
                self._problem = None
            except Failure as failure:
                self._problem = failure
        return (*events, *self._complaint())

    def _keep(self, event: Answer | Reasoning | CallParsed) -> None:
        with self._lock:
            match event:
                case Answer(text):
                    self._content.append(text)
                case Reasoning(text):
                    self._reasoning.append(text)
                case CallParsed(call):
                    self._calls.append(call)
            self._unsaved = True

    def _begun(self) -> tuple[Event, ...]:
        if self.message is not None or self._problem is not None:
            return ()
        try:
            if self._continued is None:
                message = self._messages.begin_reply(self._conversation, self._parent)
            else:
                message = self._continued.id
                self._messages.reopen_reply(message)
            versions = self._messages.siblings(self._conversation, message)
        except Failure as failure:
            self._problem = failure
            return ()
        self.message = message
        self._flusher = threading.Thread(target=self._flush_until_end, daemon=True)
        self._flusher.start()
        return (MessageSaved(self._conversation, message, "assistant", self._parent, versions),)

    def _flush_until_end(self) -> None:
        while not self._ended.wait(FLUSH_SECONDS):
            with self._lock:
                unsaved, self._unsaved = self._unsaved, False
            if unsaved and self.message is not None:
                try:
                    self._messages.save_reply(self.message, *self._kept())
                except Failure as failure:
                    self._problem = failure

    def _kept(self) -> tuple[str, str, tuple[ToolCall, ...]]:
        with self._lock:
            return "".join(self._content), "".join(self._reasoning), tuple(self._calls)

    def _complaint(self) -> tuple[Event, ...]:
        if self._problem is None:
            return ()
        return (Notice("not_saved", f"This reply is not being saved. {self._problem}", once=True),)
