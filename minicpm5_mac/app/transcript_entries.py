"""Stored messages as the transcript shows them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from minicpm5_mac.agent.announced_call import NUDGE
from minicpm5_mac.agent.unfinished_calls import unfinished
from minicpm5_mac.app.transcript import Entry, ToolResult
from minicpm5_mac.conversations.records import CRASHED, StoredMessage
from minicpm5_mac.events import HistoryShortened
from minicpm5_mac.messages import Message

NUDGED = "The model announced a call and made none; it was told so."

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
    shown: list[Entry] = []
    before: StoredMessage | None = None
    for message in messages:
        if message.role == "tool":
            if shown:
                shown[-1] = _with_result(shown[-1], message)
        elif is_nudge(message):
            shown.append(Entry(notice=NUDGED))
        elif message.role in ("user", "assistant"):
            continues = before is not None and (before.role == "tool" or is_nudge(before))
            shown.append(_entry(message, continues and message.role == "assistant"))
        before = message
    return shown


def is_nudge(message: StoredMessage) -> bool:
    """Whether the app wrote it in the user's place, since a call was only announced."""
    return message.role == "user" and message.content == NUDGE


def broke_off(messages: Sequence[StoredMessage]) -> bool:
    """Whether the turn that the conversation ends with goes on where it was left."""
    if not messages:
        return False
    last = messages[-1]
    return last.role == "tool" or is_nudge(last) or bool(unfinished(messages))


def _with_result(entry: Entry, message: StoredMessage) -> Entry:
    name = message.tool_calls[0].name if message.tool_calls else ""
    result = ToolResult(name, message.cause, message.content)
    return msgspec.structs.replace(entry, results=(*entry.results, result))


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


def _entry(stored: StoredMessage, continues: bool) -> Entry:
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
        continues=continues,
        versions=_versions(stored),
    )


def _versions(stored: StoredMessage) -> tuple[int, int]:
    siblings = stored.siblings
    return (siblings.index(stored.id) + 1, len(siblings)) if stored.id in siblings else (0, 0)
