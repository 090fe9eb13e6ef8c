"""Stored messages as the transcript shows them."""

from __future__ import annotations

from collections.abc import Sequence

from minicpm5_mac.app.transcript import Entry
from minicpm5_mac.conversations.records import CRASHED, StoredMessage
from minicpm5_mac.events import HistoryShortened
from minicpm5_mac.messages import Message

_ENDS = {
    "max_tokens": "cut at the limit of tokens for a reply",
    "context": "cut: the context is full",
    "loop": "stopped: the answer repeated itself",
    "cancelled": "stopped",
    "error": "failed",
    CRASHED: "cut: the app ended while this was being written",
}


def entries(messages: Sequence[StoredMessage]) -> list[Entry]:
    """One entry a message that is shown; results of tools are part of the reply before them."""
    return [_entry(message) for message in messages if message.role in ("user", "assistant")]


def shown_text(text: str, paths: Sequence[str]) -> str:
    """A user's message with the files that go with it: their names, not their texts."""
    return "\n".join([text, *(f"[{path}]" for path in paths if path not in text)])


def shortened_notice(event: HistoryShortened) -> str:
    """What was left out of the prompt, in a sentence between the messages."""
    parts = []
    if event.without_reasoning:
        parts.append(f"the reasoning of {len(event.without_reasoning)} replies")
    if event.left_out:
        parts.append(f"{len(event.left_out)} old messages")
    return (
        f"To make room, {' and '.join(parts)} are no longer in the prompt "
        f"({event.tokens_before:,} → {event.tokens_after:,} tokens). They are still stored."
    )


def _entry(stored: StoredMessage) -> Entry:
    paths = [attachment.path for attachment in stored.attachments]
    usage = stored.usage
    return Entry(
        str(stored.id),
        Message(
            stored.role,
            shown_text(stored.content, paths),
            stored.reasoning,
            stored.tool_calls,
        ),
        thinking_tokens=usage.thinking_tokens if usage and stored.reasoning else None,
        thinking_budget=usage.thinking_budget if usage else None,
        end=_ENDS.get(stored.cause, ""),
    )
