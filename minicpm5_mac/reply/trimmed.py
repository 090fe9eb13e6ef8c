"""Text without the blanks around it, given out as it comes."""

from __future__ import annotations


class TrimmedText:
    """Drops blanks at the start, and holds others back until more text shows they are inside."""

    def __init__(self) -> None:
        self._begun = False
        self._blanks: list[str] = []

    def add(self, text: str) -> str:
        """What can be given out, now that `text` has come."""
        if not self._begun:
            text = text.lstrip()
        kept = text.rstrip()
        if not kept:
            if text:
                self._blanks.append(text)
            return ""
        self._begun = True
        out = "".join(self._blanks) + kept
        self._blanks = [text[len(kept) :]]
        return out
