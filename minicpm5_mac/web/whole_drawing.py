"""Whether an app has drawn all of itself in a size it was given, read from what it writes.

Most of what an app draws is a part: the lines that a reply adds, a cursor that blinks. All of it is
every row, one after the other, and no more rows than the size has: a whole drawing of the size
before, which may be under way, goes on to others.
"""

from __future__ import annotations

import asyncio
import re

# Cursor to the first column of a row (CUP, ECMA-48); end of synchronized output, so of a frame.
_SEQUENCE = re.compile(rb"\x1b\[(\d+);1H|\x1b\[\?2026l")
LONGEST = 12
"""Bytes of a sequence, less one, that may be in the piece before."""


class WholeDrawing:
    """`done` is set once the rows from 1 to `rows` were drawn in a row, and then no other."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._next = 1
        self._before = b""
        self.done = asyncio.Event()

    def read(self, output: bytes) -> None:
        """Take note of one piece of what the app wrote; sequences may be cut anywhere."""
        text = self._before + output
        end = 0
        for found in _SEQUENCE.finditer(text):
            end = found.end()
            row = int(found[1]) if found[1] else 0
            if self._next == self._rows + 1 and row != self._next:
                self.done.set()
            self._next = row + 1 if row in (1, self._next) else 1
        self._before = text[max(end, len(text) - LONGEST) :]
