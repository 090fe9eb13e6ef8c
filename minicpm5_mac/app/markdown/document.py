"""A Markdown text that grows at its end, as rows at a width."""

from __future__ import annotations

from minicpm5_mac.app.markdown.layout import lay_out
from minicpm5_mac.app.markdown.lines import Row
from minicpm5_mac.app.markdown.parser import parse
from minicpm5_mac.visible_text import visible


class MarkdownDocument:
    """Append text, ask for rows."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._laid = None
        self._rows: dict[int, list[Row]] = {}

    def append(self, text: str) -> None:
        self._chunks.append(text)
        self._laid = None
        self._rows = {}

    def finish(self) -> None:
        """Nothing follows."""

    @property
    def text(self) -> str:
        return "".join(self._chunks)

    def code_blocks(self) -> list[tuple[str, str]]:
        self.rows(80)
        return [(code.language, "\n".join(code.source)) for code in self._laid.codes]

    def work(self, until: float) -> bool:
        return False

    @property
    def unfinished(self) -> bool:
        return False

    def rows(self, width: int) -> list[Row]:
        if self._laid is None:
            self._laid = lay_out(parse(visible(self.text)))
        if width not in self._rows:
            rows: list[Row] = []
            for line in self._laid.lines:
                rows += line.rows(width, rows)
            self._rows = {width: rows}
        return self._rows[width]
