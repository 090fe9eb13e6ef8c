"""A loaded tiny model, shared by the tests of one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from minicpm5_mac.engine.engine import LocalEngine
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import (
    Answer,
    CallParsed,
    Event,
    ModelReady,
    Reasoning,
    ReplyEnd,
    ThinkingClosed,
)
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest, Sampling

GREEDY = Sampling(temperature=0.0)


@dataclass
class Heard:
    """What a reply's events say, put together."""

    events: list[Event] = field(default_factory=list)

    @property
    def answer(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, Answer))

    @property
    def reasoning(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, Reasoning))

    @property
    def end(self) -> ReplyEnd:
        last = self.events[-1]
        assert isinstance(last, ReplyEnd)
        return last

    @property
    def closed(self) -> list[ThinkingClosed]:
        return [e for e in self.events if isinstance(e, ThinkingClosed)]

    def message(self) -> Message:
        """The reply as the conversation keeps it."""
        calls = tuple(e.call for e in self.events if isinstance(e, CallParsed))
        return Message("assistant", self.answer, self.reasoning, calls, self.end.ids)


def listen(stream: Iterable[Event]) -> Heard:
    """All of a reply."""
    return Heard(list(stream))


@pytest.fixture(scope="module")
def engine(tiny_model: Path) -> Iterator[LocalEngine]:
    """The real engine with the tiny model, in this process."""
    engine = LocalEngine(EngineOptions(str(tiny_model)))
    *_, ready = engine.start()
    assert isinstance(ready, ModelReady), ready
    yield engine
    engine.close()


@pytest.fixture
def say(engine: LocalEngine):
    """say(messages, **request) -> Heard; greedy unless told otherwise."""

    def say(messages: Iterable[Message], **request) -> Heard:
        request.setdefault("sampling", GREEDY)
        return listen(engine.reply(ReplyRequest(tuple(messages), **request)))

    return say
