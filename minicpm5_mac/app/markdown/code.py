"""The text of a code block, and its colours, which are worked out a little at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound
from rich.cells import cell_len, split_graphemes
from textual.highlight import HighlightTheme

ColourSpan = tuple[int, int, str]

# An open block is coloured anew when it has grown by this share: the sum over its growth stays
# proportional to its length.
_GROWTH = 1 / 12


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, stripall=False, ensurenl=False)
    except ClassNotFound:
        return None


class CodeText:
    """A code block: its lines grow while it is open, colours follow by `work`.

    language: the first word of the fence's info string, "" where there is none.
    source: the lines as written; lines: as shown, tabs as spaces.
    """

    def __init__(self, language: str = "") -> None:
        self.language = language
        self.source: list[str] = []
        self.lines: list[str] = []
        self.closed = False
        self._lexer = _lexer(language) if language else None
        self._spans: list[list[ColourSpan]] = []
        self._job: Iterator[None] | None = None
        # Lines below this number have the colours of the text they have now.
        self._coloured_to = 0
        # The lowest line that changed since the job began.
        self._changed_from = 0

    def replace(self, start: int, lines: list[str]) -> None:
        """Let `lines` be the lines from number `start` on."""
        same = 0
        for old, new in zip(self.source[start:], lines, strict=False):
            if old != new:
                break
            same += 1
        first = start + same
        if first == len(self.source) == start + len(lines):
            return
        self.source[first:] = lines[same:]
        self.lines[first:] = [line.expandtabs(4) for line in lines[same:]]
        self._coloured_to = min(self._coloured_to, first)
        self._changed_from = min(self._changed_from, first)

    def pieces(self, line: int, width: int) -> list[tuple[int, int]]:
        """The ranges of characters of a line's rows at `width` cells."""
        text = self.lines[line]
        if len(text) * 2 <= width or cell_len(text) <= width:
            return [(0, len(text))]
        cuts, used = [0], 0
        for start, _, cells in split_graphemes(text)[0]:
            if used and used + cells > width:
                cuts.append(start)
                used = 0
            used += cells
        return list(zip(cuts, [*cuts[1:], len(text)], strict=True))

    def spans(self, line: int) -> list[ColourSpan] | None:
        """The colours of a line, None while they are not known."""
        return self._spans[line] if line < len(self._spans) else None

    @property
    def unfinished(self) -> bool:
        """Whether `work` has something to do."""
        if self._lexer is None:
            return False
        if self._job is not None:
            return True
        grown = len(self.lines) - self._coloured_to
        return grown > (0 if self.closed else self._coloured_to * _GROWTH)

    def work(self, until: float) -> bool:
        """Colour on until `time.monotonic()` reaches `until`; whether any line changed."""
        if not self.unfinished:
            return False
        if self._job is None:
            self._changed_from = len(self.lines)
            self._job = self._colour("\n".join(self.lines))
        changed = False
        for _ in self._job:
            changed = True
            if time.monotonic() >= until:
                return changed
        self._job = None
        self._coloured_to = self._changed_from
        return True

    def _colour(self, text: str) -> Iterator[None]:
        """Lex `text` and put each line's spans in place, yielding after each token."""
        assert self._lexer is not None
        styles = HighlightTheme.STYLES
        number = 0
        spans: list[ColourSpan] = []
        offset = 0
        for _, kind, token in self._lexer.get_tokens_unprocessed(text):
            while kind not in styles and kind.parent is not None and kind is not Token:
                kind = kind.parent
            style = styles.get(kind, "")
            for index, part in enumerate(token.split("\n")):
                if index:
                    self._put(number, spans)
                    number, spans, offset = number + 1, [], 0
                if part and style:
                    spans.append((offset, offset + len(part), style))
                offset += len(part)
            yield
        self._put(number, spans)

    def _put(self, number: int, spans: list[ColourSpan]) -> None:
        if number < len(self._spans):
            self._spans[number] = spans
        else:
            self._spans.append(spans)
