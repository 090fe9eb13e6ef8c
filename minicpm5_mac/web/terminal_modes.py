"""Which modes of the terminal an app has switched on, read from what it writes.

A page that was reloaded has a new terminal, which knows nothing of the alternate screen, the
mouse or bracketed paste; the app switched them on once and does not know that it must again.
"""

from __future__ import annotations

import re

# DEC private modes (xterm's ctlseqs, "DECSET" and "DECRST"): CSI ? Pm h and CSI ? Pm l.
# Titles: OSC 0 or 2, ended by BEL or ST.
_SEQUENCE = re.compile(
    rb"\x1b\[\?([0-9;]+)([hl])|\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)", re.DOTALL
)
_BEGUN = re.compile(rb"\x1b(?:\[(?:\?[0-9;]*)?|\](?:[02](?:;[^\x07\x1b]*\x1b?)?)?)?\Z", re.DOTALL)
LONGEST_BEGUN = 1024
"""Bytes of an unfinished sequence that are kept for the next piece: more than any title of ours."""

# 2026, synchronized output, lasts for one frame: a new terminal must not wait for its end.
_MOMENTARY = frozenset({b"2026"})


class TerminalModes:
    """The private modes that are on, in the order they were switched on, and the title."""

    def __init__(self) -> None:
        self._on: dict[bytes, None] = {}
        self._title: bytes | None = None
        self._begun = b""

    def read(self, output: bytes) -> None:
        """Take note of one piece of what the app wrote; sequences may be cut anywhere."""
        text = self._begun + output
        end = 0
        for found in _SEQUENCE.finditer(text):
            end = found.end()
            modes, switch, title = found.groups()
            if title is not None:
                self._title = title
                continue
            for mode in modes.split(b";"):
                self._on.pop(mode, None)
                if switch == b"h" and mode not in _MOMENTARY:
                    self._on[mode] = None
        begun = _BEGUN.search(text, end)
        self._begun = text[begun.start() :] if begun else b""
        if len(self._begun) > LONGEST_BEGUN:
            self._begun = b""

    def restore(self) -> bytes:
        """What brings a new terminal into the same modes."""
        modes = b"".join(b"\x1b[?%sh" % mode for mode in self._on)
        # A new terminal shows its cursor: mode 25 is the one that is on before anybody asks.
        cursor = b"" if b"25" in self._on else b"\x1b[?25l"
        title = b"" if self._title is None else b"\x1b]2;%s\x07" % self._title
        return modes + cursor + title
