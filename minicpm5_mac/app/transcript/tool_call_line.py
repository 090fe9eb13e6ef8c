"""A tool call in a reply: being written, whole, or refused, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

from minicpm5_mac.app.markdown.lines import Row, TextLine, plain
from minicpm5_mac.app.markdown.rows_view import RowsView
from minicpm5_mac.events import CallRejected
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.visible_text import visible

# The words people read for the parser's reasons (events.RejectReason).
_REASONS = {
    "unknown_tool": "there is no such tool",
    "missing_parameter": "a parameter is missing",
    "unknown_parameter": "it has a parameter that the tool does not know",
    "duplicate_parameter": "a parameter is given twice",
    "wrong_type": "a parameter has the wrong type",
    "malformed": "it is not written as a call must be",
    "truncated": "it was cut off",
    "inside_thinking": "it stands inside the thinking",
}


class ToolCallLine(RowsView):
    """One call, one widget, from the moment its name is known."""

    DEFAULT_CSS = Path(__file__).with_name("tool_call_line.tcss").read_text(encoding="utf-8")

    def __init__(self, name: str) -> None:
        super().__init__()
        self._rows: tuple[int, list[Row]] = (0, [])
        self.call: ToolCall | None = None
        self.name_shown = name
        self.inside_thinking = False
        self._set(f"→ {name} …", "writing")

    def parsed(self, call: ToolCall) -> None:
        """The call is whole and valid."""
        self.call = call
        self.name_shown = call.name
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        self._set(f"→ {call.name} {arguments}", "parsed")

    def rejected(self, event: CallRejected) -> None:
        """The call will not run, and why."""
        self.inside_thinking = event.reason == "inside_thinking"
        why = _REASONS.get(event.reason, event.reason)
        parameter = f" ({event.parameter})" if event.parameter else ""
        detail = f": {event.detail}" if event.detail else ""
        name = event.name or "a call"
        self._set(f"✗ {name} did not run: {why}{parameter}{detail}", "rejected")

    def abandoned(self) -> None:
        """The reply ended before the call was whole."""
        if self.has_class("writing"):
            self._set(f"{self.line.removesuffix('…')}was not finished", "rejected")

    def rows_at(self, width: int) -> list[Row]:
        if self._rows[0] != width:
            rest = plain("  ")
            rows: list[Row] = []
            for text in self.line.split("\n"):
                rows += TextLine(plain(text), rest=rest).rows(width, rows)
            self._rows = (width, rows)
        return self._rows[1]

    def _set(self, line: str, state: str) -> None:
        self.line = visible(line).replace("\t", " ")
        self._rows = (0, [])
        for other in ("writing", "parsed", "rejected"):
            self.set_class(other == state, other)
        if self.is_running:
            self.refresh(layout=True)
