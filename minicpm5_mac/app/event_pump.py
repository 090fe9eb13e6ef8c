"""The way of events from a blocking iterator to the screen, in batches, off the UI's thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator

from textual.message_pump import MessagePump

from minicpm5_mac.events import Answer, Event, Reasoning

BATCH_SECONDS = 0.05
"""At most 20 batches a second: faster is not read, and drawing is what costs."""

_log = logging.getLogger(__name__)


class EventPump:
    """Runs one iterator of events in a thread of its own.

    The thread is a daemon: an iterator that never ends cannot keep the app from quitting.
    `deliver` and `finished` are called on the UI's thread; `finished` exactly once, after the
    last batch, with what the iterator raised, if it did.
    """

    def __init__(
        self,
        owner: MessagePump,
        events: Callable[[], Iterator[Event]],
        deliver: Callable[[list[Event]], None],
        finished: Callable[[Exception | None], None],
    ) -> None:
        self._events = events
        self._deliver = deliver
        self._finished = finished
        self._waiting: deque[Event] = deque()
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._timer = owner.set_interval(BATCH_SECONDS, self._drain)
        threading.Thread(target=self._run, name="events", daemon=True).start()

    def _run(self) -> None:
        try:
            for event in self._events():
                self._waiting.append(event)
        except Exception as error:
            _log.exception("an event source failed")
            self._error = error
        finally:
            self._ended.set()

    def _drain(self) -> None:
        ended = self._ended.is_set()
        batch: list[Event] = []
        while self._waiting:
            batch.append(self._waiting.popleft())
        try:
            if batch:
                self._deliver(joined(batch))
        finally:
            if ended:
                self._timer.stop()
                self._finished(self._error)


def joined(batch: list[Event]) -> list[Event]:
    """The same events with neighbouring pieces of text made one, so that each is drawn once."""
    out: list[Event] = []
    for event in batch:
        last = out[-1] if out else None
        if isinstance(event, Answer) and isinstance(last, Answer):
            out[-1] = Answer(last.text + event.text)
        elif isinstance(event, Reasoning) and isinstance(last, Reasoning):
            out[-1] = Reasoning(last.text + event.text)
        else:
            out.append(event)
    return out
