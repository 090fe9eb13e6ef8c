"""The streaming reply parser: text in, events out, the same for every way of cutting the text."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Literal

from minicpm5_mac.events import Answer, CallRejected, CallStarted, Event, Reasoning
from minicpm5_mac.reply.arguments import judge
from minicpm5_mac.reply.call import THINK, THINK_END
from minicpm5_mac.reply.region import Piece, Region
from minicpm5_mac.reply.tool_schema import declared_tools
from minicpm5_mac.reply.trimmed import TrimmedText

_IN_THINKING = "a call written while thinking is not run"


class _Place(Enum):
    START = auto()  # nothing but blanks so far: <think> may still open a block
    THINKING = auto()
    ANSWER = auto()


class ReplyParser:
    """Reads one reply of a model.

    Events: Reasoning and Answer carry text to append, never to be withdrawn. CallStarted comes
    when a call in the answer is certain to be one; CallParsed or CallRejected when it has ended.
    A call inside of thinking, or cut within its first tag, is only rejected.

    tools: what the model was offered, in the shape of the chat template's `tools`.
    thinking_open: the prompt ended within a `<think>` block.

    Whatever is fed, nothing is raised, and the cost is linear in it.
    """

    def __init__(self, tools: Sequence[dict[str, Any]] = (), *, thinking_open: bool) -> None:
        self._tools = declared_tools(tools)
        self._place = _Place.THINKING if thinking_open else _Place.START
        self._events: list[Event] = []
        self._texts: list[str] = []
        self._trimmed = TrimmedText()
        self._region = Region(self._take, thinking=thinking_open)
        # A beginning of <think> or </think>, from its "<" on.
        self._begun = ""
        self.at_line_end = True
        self.finish: Literal["complete", "truncated"] | None = None

    @property
    def thinking(self) -> bool:
        """A thinking block is open."""
        return self._place is _Place.THINKING

    @property
    def in_call(self) -> bool:
        """A call, or what may become the opener of one, is being written, in thinking or not."""
        return self._region.in_call or self._begun == "<"

    def feed(self, text: str) -> list[Event]:
        """Read on; the events that are certain now."""
        if text:
            self.at_line_end = text.endswith("\n")
        if self._place is _Place.START:
            text = self._read_start(text)
        if self._place is _Place.THINKING:
            text = self._read_thinking(text)
        if self._place is _Place.ANSWER:
            self._region.feed(text)
        return self._drain()

    def close(self) -> list[Event]:
        """The reply is over; sets `finish`. A second call does nothing."""
        if self.finish is None:
            self._region.feed(self._begun)
            in_call = self._region.close(at_end=True)
            self.finish = "truncated" if in_call or self.thinking else "complete"
        return self._drain()

    def _read_start(self, text: str) -> str:
        text = (self._begun + text).lstrip()
        self._begun = ""
        if text.startswith(THINK):
            self._enter(_Place.THINKING)
            return text[len(THINK) :]
        if THINK.startswith(text):
            self._begun = text
            return ""
        self._enter(_Place.ANSWER)
        return text

    def _read_thinking(self, text: str) -> str:
        """The first </think> ends the block, wherever it stands: it is looked for before calls."""
        position = 0
        while position < len(text):
            if not self._begun:
                start = text.find("<", position)
                self._region.feed(text[position : start if start >= 0 else len(text)])
                if start < 0:
                    break
                self._begun = "<"
                position = start + 1
            elif THINK_END.startswith(self._begun + text[position]):
                self._begun += text[position]
                position += 1
                if self._begun == THINK_END:
                    self._begun = ""
                    self._region.close(at_end=False)
                    self._enter(_Place.ANSWER)
                    return text[position:]
            else:
                begun, self._begun = self._begun, ""
                self._region.feed(begun)
        return ""

    def _enter(self, place: _Place) -> None:
        self._flush_text()
        self._place = place
        self._trimmed = TrimmedText()
        self._region = Region(self._take, thinking=place is _Place.THINKING)

    def _take(self, piece: Piece) -> None:
        if isinstance(piece, str):
            self._texts.append(self._trimmed.add(piece))
            return
        self._flush_text()
        if isinstance(piece, CallStarted):
            self._events.append(piece)
        elif self.thinking:
            self._events.append(CallRejected("inside_thinking", piece.name, detail=_IN_THINKING))
        else:
            self._events.append(judge(piece, self._tools))

    def _flush_text(self) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        if text:
            self._events.append(Reasoning(text) if self.thinking else Answer(text))

    def _drain(self) -> list[Event]:
        self._flush_text()
        events, self._events = self._events, []
        return events
