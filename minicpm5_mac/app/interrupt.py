"""The ladder that Ctrl+C climbs: stop the reply, clear the draft, arm, quit."""

from __future__ import annotations

from enum import Enum

ARMED_SECONDS = 3.0
"""How long a first Ctrl+C with nothing to do waits for the second one that quits."""


class Rung(Enum):
    """What one press does."""

    STOP_REPLY = "stop_reply"
    CLEAR_DRAFT = "clear_draft"
    ARM = "arm"
    QUIT = "quit"


def rung(*, replying: bool, draft: str, armed: bool) -> Rung:
    """The one thing a press of Ctrl+C does now; nothing is ever thrown away by it.

    A draft of blanks alone counts as none: there is nothing in it to keep.
    """
    if replying:
        return Rung.STOP_REPLY
    if draft.strip():
        return Rung.CLEAR_DRAFT
    return Rung.QUIT if armed else Rung.ARM
