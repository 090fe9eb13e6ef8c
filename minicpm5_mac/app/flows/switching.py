"""The list of conversations, and what the user wants of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.app import App

from minicpm5_mac.app.screens.conversations import Conversations
from minicpm5_mac.conversations.store import ConversationStore


@dataclass(frozen=True)
class Wish:
    """Ids of the conversation to open or to export, None for neither.

    current_deleted: the one on the screen was deleted.
    """

    open: str | None = None
    export: str | None = None
    current_deleted: bool = False


async def pick(
    app: App[Any], store: ConversationStore, current: str | None, words: str = ""
) -> Wish:
    """Show the list until something is picked or it is closed. words: what it searches first."""
    listed = Conversations(store, current, words)
    picked = await app.push_screen_wait(listed)
    gone = current in listed.deleted
    if picked is None:
        return Wish(current_deleted=gone)
    if picked.do == "export":
        return Wish(export=picked.conversation, current_deleted=gone)
    return Wish(open=picked.conversation, current_deleted=gone)
