"""Textual's text area without a fault of it."""

from __future__ import annotations

from textual.widgets import TextArea


class TextField(TextArea):
    """A text area in which undoing a long paste is safe.

    Textual 8.2.8 lays the shorter text out while the caret still stands behind its end, and
    raises ValueError where a scroll bar goes away at that moment.
    """

    def _recompute_cursor_offset(self) -> None:
        if self.cursor_location[0] < self.document.line_count:
            super()._recompute_cursor_offset()
