"""Writing a reply as lines: in whole sentences, with words where the app has widgets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from minicpm5_mac import events
from minicpm5_mac.app.model_state import download_text
from minicpm5_mac.events import Event

# A screen reader reads what is written at once in one breath: a sentence, or a line.
_BREATH = re.compile(r"(?<=[.!?:;。！？；])\s|\n|(?<=[。！？；])")
# What would move the cursor, ring, or change colours if it came from the model.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_ENDS = {
    "max_tokens": "Cut at the limit of tokens for a reply.",
    "context": "Cut: the context is full.",
    "loop": "Stopped: the answer repeated itself.",
    "cancelled": "Stopped.",
    "context_full": "The conversation does not fit in the context.",
    "error": "The reply failed.",
    "stop": "Done.",
}

_SHARES = 10
"""A download is told this many times, not at every chunk."""


class Speaker:
    """Turns events into lines on `out`. with_reasoning: the thinking is written too."""

    def __init__(self, out: TextIO, with_reasoning: bool = False, bell: bool = False) -> None:
        self.with_reasoning = with_reasoning
        self._out = out
        self._bell = bell
        self._held = ""
        self._part = ""
        self._told_share = -1

    def line(self, text: str) -> None:
        """One line of ours, after whatever is still held back."""
        self._release()
        if self._part:
            self._out.write("\n")
            self._part = ""
        self._out.write(f"{_CONTROLS.sub('', text)}\n")
        self._out.flush()

    def model(self, batch: Iterable[Event]) -> Event | None:
        """Tell how a model is fetched and loaded; returns the event that ended it."""
        for event in batch:
            match event:
                case events.ModelStage(stage=stage, detail=detail) if stage != "ready":
                    self.line(f"{stage.capitalize()} the model. {detail}".rstrip())
                case events.DownloadProgress(total_bytes=total) if total:
                    share = event.done_bytes * _SHARES // total
                    if share != self._told_share:
                        self._told_share = share
                        self.line(f"Downloaded {download_text(event)}.")
                case events.ModelReady(name=name, notes=notes):
                    self.line(f"{name} is ready.")
                    for note in notes:
                        self.line(note)
                    return event
                case events.ModelFailed(text=text, advice=advice):
                    self.line(f"Error: {text} {advice}".rstrip())
                    return event
        return None

    def reply(self, batch: Iterable[Event]) -> Event | None:
        """Write a reply as it comes; returns its end."""
        end: Event | None = None
        for event in batch:
            match event:
                case events.Reasoning(text=text):
                    self._begin("reasoning", "Thinking.")
                    if self.with_reasoning:
                        self._say(text)
                case events.ThinkingClosed(tokens=tokens):
                    self.line(f"Thought for {tokens} tokens.")
                case events.Answer(text=text):
                    self._begin("answer", "Answer:")
                    self._say(text)
                case events.Notice(text=text):
                    self.line(f"Note: {text}")
                case events.CallRejected(name=name, reason=reason):
                    self.line(f"A call of {name or 'a tool'} did not run: {reason}.")
                case events.HistoryShortened(left_out=left_out):
                    self.line(f"{len(left_out)} old messages are no longer in the prompt.")
                case events.EngineSlow(seconds=seconds):
                    self.line(f"No progress for {seconds:.0f} seconds.")
                case events.EngineStopped():
                    self.line("Error: the model stopped. /restart starts it again.")
                case events.ContextFull(can_shorten=can_shorten):
                    self.line("The conversation does not fit in the context any more.")
                    if can_shorten:
                        self.line("/regenerate shorten leaves the oldest content out and answers.")
                    else:
                        self.line("/edit TEXT sends a shorter message in its place.")
                case events.ReplyEnd(cause=cause, detail=detail):
                    self.line(f"{_ENDS.get(cause, '')} {detail}".strip())
                    end = event
        if self._bell:
            self._out.write("\a")
            self._out.flush()
        return end

    def _begin(self, part: str, word: str) -> None:
        if self._part != part:
            self.line(word)
            self._part = part

    def _say(self, text: str) -> None:
        self._held += _CONTROLS.sub("", text)
        ends = [found.end() for found in _BREATH.finditer(self._held)]
        if ends:
            self._out.write(self._held[: ends[-1]])
            self._out.flush()
            self._held = self._held[ends[-1] :]

    def _release(self) -> None:
        self._out.write(self._held)
        if self._held.endswith("\n"):
            self._part = ""
        self._held = ""
