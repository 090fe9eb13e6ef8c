"""Reading character by character with no end in sight.

A reading is a generator: it yields what it waits for and gets the text that has come. So a
grammar is written down as one writes it for a whole text, and stands still wherever the text
ends. No character is looked at more than once, save the few of a tag that proved to be none.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

T = TypeVar("T")

# Yields "" for the next character, or one character S for all that comes before S (in as many
# pieces as it comes) and then S by itself.
Reading = Generator[str, str, T]


class Scanner:
    """Drives one reading, and keeps what was read but not yet kept or dropped: `pending`."""

    def __init__(self) -> None:
        self.pending: list[str] = []
        self._again = ""
        self._reading = self.read()
        self._wanted = next(self._reading)

    def read(self) -> Reading[None]:
        """The grammar. Never returns."""
        raise NotImplementedError

    def feed(self, text: str) -> None:
        """Read on. Cost: linear in `text`."""
        position = 0
        while position < len(text):
            piece = text[position]
            if self._wanted and piece != self._wanted:
                end = text.find(self._wanted, position)
                piece = text[position : end if end >= 0 else len(text)]
            position += len(piece)
            self.pending.append(piece)
            self._wanted = self._reading.send(piece)
            if self._again:
                again, self._again = self._again, ""
                self.feed(again)

    def read_again(self, count: int) -> None:
        """Take back the last `count` pending characters, each read by itself: they come again."""
        self._again = "".join(self.pending[-count:]) + self._again
        del self.pending[-count:]

    def drop_last(self, count: int) -> None:
        """Forget the last `count` pending characters, each read by itself."""
        del self.pending[-count:]

    def take(self) -> str:
        """All that is pending, which then is no longer."""
        text = "".join(self.pending)
        self.pending.clear()
        return text


def read_tag(scanner: Scanner, tags: Sequence[str]) -> Reading[str]:
    """What follows a "<" that has just been read, as far as it begins one of `tags`.

    Returns that tag, or a beginning of one; the character that spoiled it comes again.
    """
    read = "<"
    while read not in tags:
        char = yield ""
        if not any(tag.startswith(read + char) for tag in tags):
            scanner.read_again(1)
            return read
        read += char
    return read
