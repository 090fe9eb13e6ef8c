"""Copying to the clipboard, with the truth about it in a notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from textual.app import App

from minicpm5_mac.app.clipboard import Copied, copy_text, outcome


async def copy(
    app: App[Any], text: str, what: str, send_to_terminal: Callable[[str], None]
) -> Copied:
    """Copy `text` off the UI's thread and say what became of it. what: as in "Reply"."""

    def send(text: str) -> None:
        app.call_from_thread(send_to_terminal, text)

    copied = await asyncio.to_thread(copy_text, text, send)
    failed = copied in (Copied.FAILED, Copied.NOTHING)
    app.notify(outcome(copied, what), severity="warning" if failed else "information", timeout=3)
    return copied
