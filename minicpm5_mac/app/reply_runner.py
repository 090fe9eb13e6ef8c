"""The reply that is running: its events, its state, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from textual.message_pump import MessagePump

from minicpm5_mac.app.event_pump import EventPump
from minicpm5_mac.app.reply_state import ReplyState
from minicpm5_mac.events import ContextFull, EngineStopped, Event, MessageSaved, ReplyEnd, Usage


@dataclass
class Outcome:
    """How a reply ended. saved: its user message is stored. error: what the session raised."""

    saved: bool = False
    full: ContextFull | None = None
    end: ReplyEnd | None = None
    error: Exception | None = None

    @property
    def cancelled(self) -> bool:
        return self.end is not None and self.end.finish == "cancelled"


@dataclass
class ReplyRunner:
    """One reply at a time. `show` gets each batch of events, `ended` the outcome, always once."""

    owner: MessagePump
    show: Callable[[list[Event]], None]
    ended: Callable[[Outcome], None]
    state: ReplyState = field(default_factory=ReplyState)
    _outcome: Outcome = field(default_factory=Outcome)

    def prepare(self) -> None:
        """A reply is about to be asked for: nothing else may start until it has ended."""
        self.state = self.state.begun()

    def give_up(self) -> None:
        """The reply that was prepared will not be asked for."""
        self.state = self.state.stopped()

    def recall_counts(self, usage: Usage) -> None:
        """Another conversation is shown: these are the counts of its last reply."""
        self.state = ReplyState(usage=usage)

    def run(self, events: Callable[[], Iterator[Event]]) -> None:
        """Ask for a reply; the session's iterator is made and read in a thread."""
        self.prepare()
        self._outcome = Outcome()
        EventPump(self.owner, events, self._deliver, self._finished)

    def _deliver(self, batch: list[Event]) -> None:
        # The end is told by `ended`, after the last batch: until then a reply runs.
        ends = (ReplyEnd, EngineStopped)
        self.state = self.state.after(event for event in batch if not isinstance(event, ends))
        for event in batch:
            match event:
                case MessageSaved(role="user"):
                    self._outcome.saved = True
                case ContextFull():
                    self._outcome.full = event
                case ReplyEnd():
                    self._outcome.end = event
        self.show(batch)

    def _finished(self, error: Exception | None) -> None:
        end = self._outcome.end
        self.state = (self.state.after([end]) if end else self.state).stopped()
        self._outcome.error = error
        self.ended(self._outcome)
