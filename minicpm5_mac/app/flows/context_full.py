"""The conversation does not fit any more: what to do is the user's choice."""

from __future__ import annotations

from typing import Any, Literal

from textual.app import App

from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.events import ContextFull


async def ask(app: App[Any], full: ContextFull) -> Literal["shorten", "edit", "leave"]:
    """Leave old content out of the prompt and go on, change the last message, or neither."""
    text = (
        f"This conversation needs {full.needed:,} tokens and room for a reply; the context holds "
        f"{full.limit:,}. Everything stays stored, whatever you choose."
    )
    ways = [
        Way("e", "Edit the message", "a shorter one goes out in its place"),
        Way("n", "Leave it as it is", "start a new conversation with ctrl+n"),
    ]
    if full.can_shorten:
        note = "old reasoning first, then old messages"
        ways.insert(0, Way("s", "Shorten the prompt and answer", note))
    match await app.push_screen_wait(Choice("The context is full", text, ways)):
        case "s":
            return "shorten"
        case "e":
            return "edit"
        case _:
            return "leave"
