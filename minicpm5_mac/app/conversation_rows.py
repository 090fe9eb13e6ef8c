"""The rows of the list of conversations: the newest ones, or what a search finds."""

from __future__ import annotations

from dataclasses import dataclass

from minicpm5_mac.conversations.records import Conversation
from minicpm5_mac.conversations.search import search
from minicpm5_mac.conversations.store import ConversationStore

SHOWN = 200
"""Conversations listed at once; older ones are found by searching."""


@dataclass(frozen=True)
class Row:
    """snippet: the line in which a search found something; marks: (start, end) of it in there."""

    conversation: Conversation
    snippet: str = ""
    marks: tuple[tuple[int, int], ...] = ()


def find_rows(store: ConversationStore, query: str) -> list[Row]:
    """Rows, the conversation used last first. Reads every text when there is a query; blocks."""
    if not query:
        return [Row(conversation) for conversation in store.list(limit=SHOWN)]
    return [
        Row(hit.conversation, hit.snippet, hit.marks)
        if hit.message is not None
        else Row(hit.conversation)
        for hit in search(store, query, limit=SHOWN)
    ]
