"""What a laid-out text is made of: lines, which know no width, and the rows they become at one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from rich.cells import cell_len, set_cell_size
from textual.content import Content, Span

from minicpm5_mac.app.markdown.code import CodeText
from minicpm5_mac.app.markdown.wrap import breaks

EMPTY = Content("")


def plain(text: str, style: str = "") -> Content:
    """`text` in one style, taken literally."""
    spans = [Span(0, len(text), style)] if style and text else []
    return Content(text, spans, strip_control_codes=False)


_PAD = plain(" ", ".markdown--code")


@dataclass(slots=True, eq=False)
class Row:
    """One row of cells.

    prefix: what stands left of the text (indentation, bullet, quote bar); body: the text.
    joint: what stands between the row before and this one in copied text: "\\n", or "" and " "
        where a line was only wrapped.
    fill: a style for the cells from the prefix to the right edge, or "".
    code, line, start: where the body is a part of a code block: which line of it, from which
        offset; its colours come later than its text.
    """

    prefix: Content
    body: Content
    joint: str = "\n"
    fill: str = ""
    code: CodeText | None = None
    line: int = 0
    start: int = 0

    @property
    def text(self) -> str:
        return self.prefix.plain + self.body.plain

    @property
    def body_start(self) -> int:
        return len(self.prefix.plain)

    def content(self) -> Content:
        """Prefix and body, with the colours known by now."""
        body = self.body
        if self.code is not None and (spans := self.code.spans(self.line)) is not None:
            end = self.start + len(body.plain)
            body = body.add_spans(
                [
                    Span(max(a, self.start) - self.start, min(b, end) - self.start, style)
                    for a, b, style in spans
                    if a < end and b > self.start
                ]
            )
        return self.prefix + body if self.prefix.plain else body


class Line(Protocol):
    """Something that becomes rows at a width, given the rows before it."""

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        """Its rows at `width` cells. May take the last of `before` back to continue it."""
        ...


@dataclass(slots=True)
class TextLine:
    """Text to be wrapped. first and rest: prefixes of its first row and of the others.

    continues: it goes on where the previous line's text ended (one paragraph in two pieces).
    """

    body: Content
    first: Content = EMPTY
    rest: Content = EMPTY
    continues: bool = False

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        body, first, joint = self.body, self.first, "\n"
        if self.continues and before:
            last = before.pop()
            body, first, joint = last.body + body, last.prefix, last.joint
        room = max(1, width - cell_len(self.rest.plain))
        cuts = breaks(body.plain, room)
        if not cuts:
            return [Row(first, body, joint)]
        rows = [Row(first, body[: cuts[0]], joint)]
        for start, end in zip(cuts, [*cuts[1:], len(body.plain)], strict=True):
            space = " " if body.plain[start - 1].isspace() else ""
            rows.append(Row(self.rest, body[start:end], space))
        return rows


@dataclass(slots=True)
class CodeLine:
    """One line of a code block; a line longer than the row is cut, not wrapped at words."""

    code: CodeText
    line: int
    prefix: Content = EMPTY

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        text = self.code.lines[self.line]
        prefix = self.prefix + _PAD
        room = max(1, width - cell_len(prefix.plain) - 1)
        style = ".markdown--code"
        pieces = self.code.pieces(self.line, room)
        return [
            Row(
                prefix,
                plain(text[start:end], style),
                "\n" if start == 0 else "",
                style,
                self.code,
                self.line,
                start,
            )
            for start, end in pieces
        ]


@dataclass(slots=True)
class LabelLine:
    """The head of a code block: its language, on the block's background."""

    label: str
    prefix: Content = EMPTY

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        prefix = self.prefix + _PAD
        room = max(1, width - cell_len(prefix.plain))
        label = self.label if cell_len(self.label) <= room else set_cell_size(self.label, room)
        return [Row(prefix, plain(label, ".markdown--label"), fill=".markdown--code")]


@dataclass(slots=True)
class RuleLine:
    """A thematic break, or the line below a heading."""

    prefix: Content = EMPTY
    glyph: str = "─"

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        room = max(1, width - cell_len(self.prefix.plain))
        return [Row(self.prefix, plain(self.glyph * room, ".markdown--border"))]


@dataclass(slots=True)
class BlankLine:
    """An empty row between blocks."""

    prefix: Content = field(default_factory=lambda: EMPTY)

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        return [Row(self.prefix, EMPTY)]
