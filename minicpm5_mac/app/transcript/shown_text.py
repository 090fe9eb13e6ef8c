"""Text of a call or its result: wrapped, nothing hidden in it, a unified diff in its colours."""

from __future__ import annotations

from minicpm5_mac.app.markdown.lines import Row, TextLine, plain
from minicpm5_mac.app.markdown.rows_view import RowsView
from minicpm5_mac.visible_text import unhidden

_DIFF_STYLES = (
    ("+++", "bold"),
    ("---", "bold"),
    ("@@", "$accent"),
    ("+", "$success"),
    ("-", "$error"),
)


class ShownText(RowsView):
    """Its text can be set again and again. diff: its lines are those of a unified diff."""

    DEFAULT_CSS = "ShownText { height: auto; }"

    def __init__(self, text: str = "", *, diff: bool = False, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._diff = diff
        self._text = ""
        self._rows: tuple[int, list[Row]] = (0, [])
        self.set(text)

    @property
    def text(self) -> str:
        """What is shown, every character of it visible."""
        return self._text

    def set(self, text: str, *, diff: bool | None = None) -> None:
        """Show another text."""
        self._diff = self._diff if diff is None else diff
        self._text = unhidden(text).removesuffix("\n")
        self._rows = (0, [])
        if self.is_running:
            self.refresh(layout=True)

    def rows_at(self, width: int) -> list[Row]:
        if self._rows[0] != width:
            rows: list[Row] = []
            for line in self._text.split("\n"):
                body = plain(line.expandtabs(4), self._style_of(line))
                rows += TextLine(body).rows(width, rows)
            self._rows = (width, rows)
        return self._rows[1]

    def _style_of(self, line: str) -> str:
        if not self._diff:
            return ""
        return next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")
