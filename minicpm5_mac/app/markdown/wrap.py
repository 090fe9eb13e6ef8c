"""Where a line of text breaks into rows of a width in cells.

Greedy from the left: rows depend on what is before them alone, so text may be appended and only
the last row is broken again. Breaks come after spaces and beside wide (CJK) characters, but not
before closing or after opening punctuation; a word longer than a row is cut between characters.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, split_graphemes

# Punctuation that must not start or end a row (the common core of JIS X 4051 and GB/T 15834).
_NO_START = "，。、；：？！）」』】》〉〕”’…·ー～"
_NO_END = "（「『【《〈〔“‘"
# Hangul, CJK and full-width forms, emoji: wide in Unicode's EastAsianWidth.txt, coarsely.
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f"
    "\uff01-\uff60\uffe0-\uffe6\U0001f000-\U0001faff\U00020000-\U0003fffd"
)
# What belongs to the cell before it: joiner, emoji selector, skin tones.
_JOINED = "\u200d\ufe0f\U0001f3fb-\U0001f3ff"
_unit = re.compile(
    rf"[{_NO_END}]*"
    rf"(?:[{_WIDE}][{_JOINED}]*(?:(?<=\u200d).[{_JOINED}]*)*"
    rf"|[^\s{_WIDE}{_NO_END}]+|(?<=[{_NO_END}])|(?=\s))"
    rf"[{_NO_START}]*\s*",
    re.DOTALL,
)


def breaks(text: str, width: int) -> list[int]:
    """Offsets into `text` (no newlines, no tabs) at which a new row starts.

    Spaces before a break hang over the edge; callers strip them. width: cells, at least 1; a
    character wider than `width` has a row of its own.
    """
    if len(text) * 2 <= width or cell_len(text) <= width:
        return []
    found: list[int] = []
    used = 0
    position = 0
    while position < len(text):
        match = _unit.match(text, position)
        end = match.end() if match and match.end() > position else position + 1
        unit = text[position:end]
        size = cell_len(unit.rstrip())
        if used and used + size > width:
            found.append(position)
            used = 0
        if size > width:
            used = _cut(unit, position, width, found)
        else:
            used += cell_len(unit)
        position = end
    return found


def _cut(unit: str, position: int, width: int, found: list[int]) -> int:
    """Cut a unit that is longer than a row; append to `found`, return the cells of its last row."""
    used = 0
    for start, _, cells in split_graphemes(unit)[0]:
        if used and used + cells > width and not unit[start].isspace():
            found.append(position + start)
            used = 0
        used += cells
    return used
