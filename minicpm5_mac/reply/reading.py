"""A whole reply at once: what its events add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from minicpm5_mac.events import Answer, CallParsed, CallRejected, Reasoning
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.reply.parser import ReplyParser


@dataclass(frozen=True)
class ReplyReading:
    """A finished reply. finish: truncated where a block or a call was still open at the end."""

    reasoning: str
    content: str
    tool_calls: tuple[ToolCall, ...]
    rejected: tuple[CallRejected, ...]
    finish: Literal["complete", "truncated"]


def read_reply(
    text: str,
    tools: Sequence[dict[str, Any]] = (),
    *,
    thinking_open: bool,
    chunk: int | None = None,
) -> ReplyReading:
    """Read `text`, `chunk` characters at a time or, by default, all at once."""
    parser = ReplyParser(tools, thinking_open=thinking_open)
    step = chunk or max(1, len(text))
    events = [
        event
        for start in range(0, len(text), step)
        for event in parser.feed(text[start : start + step])
    ]
    events += parser.close()
    return ReplyReading(
        reasoning="".join(event.text for event in events if isinstance(event, Reasoning)),
        content="".join(event.text for event in events if isinstance(event, Answer)),
        tool_calls=tuple(event.call for event in events if isinstance(event, CallParsed)),
        rejected=tuple(event for event in events if isinstance(event, CallRejected)),
        finish=parser.finish or "complete",
    )
