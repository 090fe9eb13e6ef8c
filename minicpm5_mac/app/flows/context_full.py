"""The conversation does not fit any more: what to do is the user's choice."""

from __future__ import annotations

from typing import Any

from textual.app import App

from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.events import ContextFull


async def shorten(app: App[Any], full: ContextFull) -> bool:
    """Whether to leave old content out of the prompt and go on."""
    text = (
        f"This conversation needs {full.needed:,} tokens and the context holds {full.limit:,}. "
        "Everything stays stored, whatever you choose."
    )
    ways = [Way("n", "Leave it as it is", "start a new conversation with ctrl+n")]
    if full.can_shorten:
        note = "old reasoning first, then old messages"
        ways.insert(0, Way("s", "Shorten the prompt and answer", note))
    return await app.push_screen_wait(Choice("The context is full", text, ways)) == "s"
