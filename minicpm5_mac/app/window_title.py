"""The title of the terminal's window while the app runs."""

from __future__ import annotations

import re

SAVE = "\x1b[22;2t"
RESTORE = "\x1b[23;2t"
"""XTerm's title stack: the shell's title comes back at the end."""

LONGEST = 80


def set_title(title: str) -> str:
    """The sequence (OSC 2) that shows `title`, without control characters and cut to fit."""
    clean = re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", title).strip()
    if len(clean) > LONGEST:
        clean = clean[: LONGEST - 1] + "…"
    return f"\x1b]2;{clean}\x07"
