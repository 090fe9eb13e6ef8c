"""What was typed before, for the up and down keys at the edges of the composer."""

from __future__ import annotations

from collections.abc import Iterable

LIMIT = 500
"""Entries kept in memory; more would only cost, nobody presses a key 500 times."""


class InputHistory:
    """Earlier inputs, oldest first, with a place in them and the draft that was left for them.

    Moving keeps the text being left: stepping back and forth never loses an edit.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries: list[str] = []
        self._edited: dict[int, str] = {}
        self._at = 0
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def browsing(self) -> bool:
        """Whether the composer shows an earlier input rather than the draft."""
        return self._at < len(self._entries)

    def add(self, text: str) -> None:
        """Remember a text as the newest and forget edits made while browsing."""
        text = text.strip("\n")
        if text.strip() and (not self._entries or self._entries[-1] != text):
            self._entries.append(text)
            del self._entries[:-LIMIT]
        self._edited.clear()
        self._at = len(self._entries)

    def older(self, current: str) -> str | None:
        """Keep `current` and return the text before it; None at the oldest."""
        return self._move(-1, current)

    def newer(self, current: str) -> str | None:
        """Keep `current` and return the text after it, at last the draft; None at the draft."""
        return self._move(1, current)

    def _move(self, step: int, current: str) -> str | None:
        target = self._at + step
        if not 0 <= target <= len(self._entries):
            return None
        self._edited[self._at] = current
        self._at = target
        if target in self._edited:
            return self._edited[target]
        return self._entries[target] if target < len(self._entries) else ""
