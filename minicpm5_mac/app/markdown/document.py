"""A Markdown text that grows at its end, as rows at a width.

What is finished (see cut.py) is laid out once and kept. The rest is parsed again when it is asked
for; it is short, so a token costs the same at the beginning and at the end of any text.
"""

from __future__ import annotations

import time
from dataclasses import replace

from minicpm5_mac.app.markdown.code import CodeText
from minicpm5_mac.app.markdown.context import START, Context
from minicpm5_mac.app.markdown.cut import Limits, find_cut
from minicpm5_mac.app.markdown.layout import Layout
from minicpm5_mac.app.markdown.lines import Line, Row, TextLine
from minicpm5_mac.app.markdown.parser import parse
from minicpm5_mac.visible_text import visible


class MarkdownDocument:
    """Append text, ask for rows. The rows after `finish` depend on the whole text alone."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 (it is frozen)
        self._limits = limits
        self._chunks: list[str] = []
        self._held = ""  # A CR at the end, which may be half a line's end.
        self._tail = ""
        self._mark = 0  # Up to here cuts were looked for.
        self._context: Context = START
        self._solid: list[Line] = []
        self._codes: list[CodeText] = []
        self._colourless: list[CodeText] = []
        self._open: Layout | None = None
        self._kept: list[CodeText] = []
        self._rows = _Rows()

    @property
    def text(self) -> str:
        """The whole text as it was appended."""
        if len(self._chunks) > 1:
            self._chunks = ["".join(self._chunks)]
        return self._chunks[0] if self._chunks else ""

    def append(self, text: str) -> None:
        """Add text at the end."""
        if not text:
            return
        self._chunks.append(text)
        self._add(self._held + text)

    def finish(self) -> None:
        """Nothing follows."""
        if self._held:
            self._put(visible(self._held))
            self._held = ""
        for code in self._opened().codes:
            code.closed = True

    def rows(self, width: int) -> list[Row]:
        """All rows at `width` cells (at least 1). The list is the document's own: only read it."""
        return self._rows.at(width, self._solid, self._opened().lines)

    @property
    def finished_rows(self) -> int:
        """How many of the rows were the same when `rows` was asked before."""
        return self._rows.unchanged

    def code_blocks(self) -> list[tuple[str, str]]:
        """(language, code) of each code block, in order; the language may be ""."""
        codes = list(self._codes)
        for code in self._opened().codes:
            if not codes or codes[-1] is not code:
                codes.append(code)
        return [(code.language, "\n".join(code.source)) for code in codes]

    @property
    def unfinished(self) -> bool:
        """Whether code waits to be coloured (see `work`)."""
        return any(code.unfinished for code in self._colouring())

    def work(self, until: float) -> bool:
        """Colour code until `time.monotonic()` reaches `until`; whether anything changed."""
        changed = False
        for code in self._colouring():
            while code.unfinished and time.monotonic() < until:
                changed = code.work(until) or changed
        self._colourless = [code for code in self._colourless if code.unfinished]
        return changed

    def _colouring(self) -> list[CodeText]:
        opened = self._opened().codes
        return [*(code for code in self._colourless if code not in opened), *opened]

    def _add(self, text: str) -> None:
        self._held = "\r" if text.endswith("\r") else ""
        self._put(visible(text[: len(text) - len(self._held)]))

    def _put(self, text: str) -> None:
        self._tail += text
        self._kept = self._opened_codes()
        self._open = None
        self._advance()

    def _opened_codes(self) -> list[CodeText]:
        return self._kept if self._open is None else self._open.codes

    def _opened(self) -> Layout:
        if self._open is None:
            blocks = parse(self._context.stub + self._tail)
            self._open = Layout(self._kept).blocks(blocks, self._context)
        return self._open

    def _advance(self) -> None:
        """Cut at every place up to the end of the text at which cuts are looked for."""
        while (place := self._next_place()) is not None:
            start = 0
            while True:
                cut = find_cut(self._tail[start:place], self._context, self._limits)
                if cut is None:
                    break
                self._freeze(self._tail[start : start + cut.offset], cut.context)
                start += cut.offset
            self._tail = self._tail[start:]
            self._mark = place - start

    def _next_place(self) -> int | None:
        """The next place to look for cuts: a line's end, or in a long line anywhere."""
        step = self._limits.step
        line_end = self._tail.find("\n", self._mark + step, self._mark + 4 * step)
        if line_end >= 0:
            return line_end + 1
        return self._mark + 4 * step if len(self._tail) >= self._mark + 4 * step else None

    def _freeze(self, text: str, context: Context) -> None:
        blocks = parse(self._context.stub + text)
        laid = Layout(self._kept).blocks(blocks, self._context)
        goes_on = context.within == "code"
        if goes_on:
            code = laid.codes[-1]
            context = replace(context, code=code, committed=len(code.lines))
        if context.within == "table":
            context = replace(context, table=laid.tables[-1])
        if context.within == "word" and isinstance(last := laid.lines[-1], TextLine):
            last.body += text[len(text.rstrip(" \t")) :]
        self._kept = self._kept[len(laid.codes) - goes_on :]
        for index, code in enumerate(laid.codes):
            code.closed = not (goes_on and index == len(laid.codes) - 1)
            if not self._codes or self._codes[-1] is not code:
                self._codes.append(code)
                self._colourless.append(code)
        self._solid += laid.lines
        self._context = context


class _Rows:
    """Rows of finished lines, made once a width, and of open ones, made anew when they change."""

    def __init__(self) -> None:
        self.unchanged = 0  # How many rows the last change left as they were.
        self._width = 0
        self._rows: list[Row] = []
        self._lines = 0  # How many finished lines are rows.
        self._solid = 0  # How many rows these are.
        self._last: Row | None = None  # The last of these, which an open line may continue.
        self._open: list[Line] | None = None

    def at(self, width: int, solid: list[Line], opened: list[Line]) -> list[Row]:
        if width != self._width:
            self.__init__()
            self._width = width
        if self._lines == len(solid) and self._open is opened:
            return self._rows
        rows = self._rows
        self.unchanged = max(0, self._solid - 1)
        if self._last is not None:
            rows[self._solid - 1 :] = [self._last]
        else:
            rows.clear()
        for line in solid[self._lines :]:
            rows += line.rows(width, rows)
        self._lines, self._solid = len(solid), len(rows)
        self._last = rows[-1] if rows else None
        for line in opened:
            rows += line.rows(width, rows)
        self._open = opened
        return rows
