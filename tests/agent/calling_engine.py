"""The real engine, whose replies make the calls that a test wants: all else about them is real."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from minicpm5_mac.engine.engine import LocalEngine
from minicpm5_mac.events import CallParsed, CallRejected, Event, ReplyEnd
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.request import ReplyRequest


class CallingEngine:
    """Prompt, ids, cache and text are the model's own; each reply ends with one of `calls`.

    What the model itself calls is left out. Replies are cut at `tokens`, as if it had stopped.
    """

    def __init__(self, engine: LocalEngine, calls: list[ToolCall], tokens: int = 24) -> None:
        self._engine = engine
        self._calls = list(calls)
        self._tokens = tokens

    def reply(self, request: ReplyRequest) -> Iterator[Event]:
        request = msgspec.structs.replace(request, max_tokens=self._tokens)
        for event in self._engine.reply(request):
            if isinstance(event, CallParsed | CallRejected):
                continue
            if isinstance(event, ReplyEnd):
                if self._calls:
                    yield CallParsed(self._calls.pop(0))
                event = msgspec.structs.replace(event, finish="complete", cause="stop")
            yield event

    def __getattr__(self, name: str):
        return getattr(self._engine, name)
