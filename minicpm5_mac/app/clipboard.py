"""Copying text out of the app, and saying truthfully how far it got."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from enum import Enum

PBCOPY_SECONDS = 5.0
"""pbcopy answers at once; a wait longer than this is a fault, not slowness."""


class Copied(Enum):
    """What became of a copy."""

    CLIPBOARD = "clipboard"
    """The system's clipboard took it: its own program said so by its exit status."""
    TERMINAL = "terminal"
    """It was sent to the terminal (OSC 52), which never answers."""
    NOTHING = "nothing"
    """There was nothing to copy."""
    FAILED = "failed"


def copy_text(
    text: str, send_to_terminal: Callable[[str], None], program: str | None = None
) -> Copied:
    """Copy `text`: by `pbcopy` on macOS, elsewhere or where that fails through the terminal.

    send_to_terminal writes the OSC 52 sequence. program: the clipboard program to feed; found by
    name on macOS when it is not given. Blocks until the program ends.
    """
    if not text:
        return Copied.NOTHING
    if program is None and sys.platform == "darwin":
        program = shutil.which("pbcopy")
    if program is not None:
        try:
            done = subprocess.run(
                [program],
                input=text.encode("utf-8", "surrogatepass"),
                env={"LC_CTYPE": "UTF-8"},  # without it pbcopy takes the bytes for MacRoman
                timeout=PBCOPY_SECONDS,
                capture_output=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            done = None
        if done is not None and done.returncode == 0:
            return Copied.CLIPBOARD
    try:
        send_to_terminal(text)
    except OSError:
        return Copied.FAILED
    return Copied.TERMINAL


def outcome(copied: Copied, what: str) -> str:
    """A sentence for the user. what: the thing copied, as in "Reply"."""
    match copied:
        case Copied.CLIPBOARD:
            return f"{what} copied."
        case Copied.TERMINAL:
            return f"{what} sent to the terminal's clipboard."
        case Copied.NOTHING:
            return "Nothing to copy."
        case Copied.FAILED:
            return f"{what} could not be copied."
