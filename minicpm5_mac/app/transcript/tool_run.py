"""What became of a call: it waits, it runs and writes, it ended; all of it on demand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from textual import events as textual_events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message as TextualMessage
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from minicpm5_mac.app.tool_words import OUTCOME_WORDS
from minicpm5_mac.app.transcript.entry import ToolResult
from minicpm5_mac.app.transcript.message import CopyRequested
from minicpm5_mac.app.transcript.shown_text import ShownText
from minicpm5_mac.events import ApprovalWanted, ToolFinished, ToolStarted

TAIL_LINES = 4
"""Of output that is not opened, as many of its last lines are shown while it comes."""
LIVE_LINES = 200
"""Of output that is opened while it comes; all of it is in the result."""


class CancelCallRequested(TextualMessage):
    """The user wants this command to end, and the turn to go on."""


class ToolRun(Widget, can_focus=True):
    """Below a call's line. Closed it is one line; while it runs, with the end of its output."""

    DEFAULT_CSS = Path(__file__).with_name("tool_run.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "toggle", "Open or close the result"),
        Binding("c,y", "copy_result", "Copy the result"),
        Binding("x", "cancel_call", "End this command alone"),
    ]

    expanded: reactive[bool] = reactive(False)

    def __init__(self, number: int | None = None, result: ToolResult | None = None) -> None:
        """number: the call's id among those of the session. result: of a stored call."""
        super().__init__()
        self.number = number
        self.result = result
        self._seconds: float | None = None
        self._status: int | None = None
        self._began: float | None = None
        self._output = ""
        self._diff = False
        self._ticking: Timer | None = None
        self._head = Static(markup=False, classes="head")
        self._shown = ShownText(classes="shown")
        self._text = ShownText(classes="text")

    # What happens to it -------------------------------------------------------------------------

    def waits(self, event: ApprovalWanted) -> None:
        """The user is asked."""
        self._show_call(event)

    def started(self, event: ToolStarted) -> None:
        """It runs."""
        self._began = time.monotonic()
        self._show_call(event)
        if self.is_running:
            self._ticking = self.set_interval(1.0, self._write)

    def wrote(self, text: str) -> None:
        """Output, to append."""
        self._output += text
        self._write()

    def finished(self, event: ToolFinished) -> None:
        """It ended, or never ran."""
        self._seconds, self._status = event.seconds, event.status
        self.result = ToolResult(event.name, event.outcome, event.result)
        if self._ticking is not None:
            self._ticking.stop()
        self._write()

    def _show_call(self, event: ApprovalWanted | ToolStarted) -> None:
        self._diff = event.kind == "write"
        self._shown.set(event.shown, diff=self._diff)
        self._write()

    # What is shown ------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """The head line: "done · 0.2 s · 12 lines"."""
        result = self.result
        if result is None:
            if self._began is None:
                return "waits for your word"
            return f"running · {time.monotonic() - self._began:.0f} s · f10 ends it"
        parts = [OUTCOME_WORDS.get(result.outcome, result.outcome)]
        if self._status:
            parts.append(f"status {self._status}")
        if self._seconds is not None and self._began is not None:
            parts.append(f"{self._seconds:.1f} s")
        lines = len(result.text.splitlines())
        parts.append(f"{lines:,} line{'' if lines == 1 else 's'}")
        return " · ".join(parts)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._shown
        yield self._text

    def on_mount(self) -> None:
        self._write()
        if self._began is not None and self.result is None:
            self._ticking = self.set_interval(1.0, self._write)

    def watch_expanded(self) -> None:
        self._write()

    def on_click(self, event: textual_events.Click) -> None:
        if event.widget is self._head:
            self.action_toggle()

    def action_toggle(self) -> None:
        """Show the whole call and its whole result, or neither."""
        self.expanded = not self.expanded

    def action_copy_result(self) -> None:
        text = self.result.text if self.result is not None else self._output
        self.post_message(CopyRequested(text, "result"))

    def action_cancel_call(self) -> None:
        if self.result is None:
            self.post_message(CancelCallRequested())

    def _write(self) -> None:
        if not self.is_mounted:
            return
        result = self.result
        bad = result is not None and result.outcome in ("error", "limit", "refused")
        self.set_class(bad, "bad")
        self._head.update(f"  {'▾' if self.expanded else '▸'} {self.summary}")
        self._shown.display = self.expanded and bool(self._shown.text)
        text = self._text_now()
        self._text.display = bool(text)
        if text != self._text.text:
            self._text.set(text)

    def _text_now(self) -> str:
        if self.expanded:
            if self.result is not None:
                return self.result.text
            return _end(self._output, LIVE_LINES)
        if self.result is None:
            return _end(self._output, TAIL_LINES)
        return _end(self.result.text, TAIL_LINES) if self.has_class("bad") else ""


def _end(text: str, lines: int) -> str:
    kept = text.splitlines()[-lines:]
    return "\n".join(kept)
