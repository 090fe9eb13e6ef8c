"""A conversation's title, taken from what the user wrote first."""

from __future__ import annotations

import unicodedata

LONGEST = 60
UNTITLED = "Untitled"
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def clean_title(text: str) -> str:
    """One line of visible text: control, format and bidirectional characters are taken out."""
    spaced = (" " if character in "\t\n\r\v\f\u2028\u2029" else character for character in text)
    visible = (c for c in spaced if unicodedata.category(c) not in _INVISIBLE)
    return " ".join("".join(visible).split())


def title_from(text: str) -> str:
    """The first line that shows anything, cut after a whole word to at most 60 characters.

    Text without spaces (Chinese, a long path) is cut at the limit. `Untitled` where nothing
    is visible.
    """
    line = next((found for part in text.splitlines() if (found := clean_title(part))), "")
    if len(line) <= LONGEST:
        return line or UNTITLED
    cut = line[: LONGEST - 1]
    if line[LONGEST - 1] != " " and " " in cut:
        cut = cut[: cut.rindex(" ")]
    return cut.rstrip() + "…"
