"""An engine that says what a test tells it to, for what a real model cannot be made to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from minicpm5_mac.events import Event, ReplyEnd
from minicpm5_mac.request import ReplyRequest

Script = Iterable[Event] | Callable[["ScriptedEngine"], Iterator[Event]]


class ScriptedEngine:
    """Follows one script a reply; see `engine.interface.Engine`.

    requests: what was asked, in order. cancelled: set while a cancelled reply ends.
    """

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[ReplyRequest] = []
        self.cancelled = threading.Event()
        self.answers_wanted = 0
        self.closed = 0

    def start(self) -> Iterator[Event]:
        yield from ()

    def reply(self, request: ReplyRequest) -> Iterator[Event]:
        self.requests.append(request)
        self.cancelled.clear()
        script = self.scripts.pop(0)
        events = script(self) if callable(script) else script
        for event in events:
            if self.cancelled.is_set():
                yield ReplyEnd("cancelled", "cancelled")
                return
            yield event

    def cancel(self) -> None:
        self.cancelled.set()

    def answer_now(self) -> None:
        self.answers_wanted += 1

    def close(self) -> None:
        self.closed += 1
