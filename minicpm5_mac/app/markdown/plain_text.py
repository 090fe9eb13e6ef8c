"""Text shown as it is: what a user wrote, however long."""

from __future__ import annotations

from minicpm5_mac.app.markdown.lines import Line, Row, TextLine, plain
from minicpm5_mac.app.markdown.rows_view import RowsView
from minicpm5_mac.visible_text import visible


class PlainText(RowsView):
    """Text without markup, wrapped; control characters are shown as symbols."""

    def __init__(self, text: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.text = text
        self._lines: list[Line] = [
            TextLine(plain(line.expandtabs(4))) for line in visible(text).split("\n")
        ]
        self._rows: tuple[int, list[Row]] = (0, [])

    def rows_at(self, width: int) -> list[Row]:
        if self._rows[0] != width:
            rows: list[Row] = []
            for line in self._lines:
                rows += line.rows(width, rows)
            self._rows = (width, rows)
        return self._rows[1]
