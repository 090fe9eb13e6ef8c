"""Keys that terminals send and Textual 8.2 does not tell apart."""

from __future__ import annotations

from enum import Enum
from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS


class ExtraKey(Enum):
    """Keys without a name in Textual's own list, with the name that bindings use."""

    ALT_ENTER = "alt+enter"


def teach_terminal_keys() -> None:
    """Alt and Enter come as ESC CR (xterm, Terminal.app with Option as Meta): no plain Enter."""
    known = cast("dict[str, Any]", ANSI_SEQUENCES_KEYS)
    known.setdefault("\x1b\r", (ExtraKey.ALT_ENTER,))
