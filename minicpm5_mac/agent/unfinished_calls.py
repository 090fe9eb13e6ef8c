"""Calls that have no result: the app ended, or the user stopped, before they were run or done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import MessageSaved
from minicpm5_mac.messages import ToolCall

NOT_RUN = "Not run: the session ended before this call."
INTERRUPTED = (
    "Interrupted: the session ended before this call was done. It may have been done in part: "
    "look before you repeat it."
)


def unfinished(path: Sequence[StoredMessage]) -> tuple[ToolCall, ...]:
    """The calls of the last reply that no tool message answers; empty where all is told."""
    results = 0
    for message in reversed(path):
        if message.role == "tool":
            results += bool(message.tool_calls)
            continue
        return message.tool_calls[results:] if message.role == "assistant" else ()
    return ()


def settle(
    store: ConversationStore, conversation: str, path: Sequence[StoredMessage]
) -> Iterator[MessageSaved]:
    """Give each unfinished call its result, so that no half-run call is taken for done.

    The first of a whole reply may have been running; the others, and those of a reply that was
    itself cut off, were not.
    """
    calls = unfinished(path)
    parent = path[-1].id if path else None
    reply = next((message for message in reversed(path) if message.role == "assistant"), None)
    for number, call in enumerate(calls):
        begun = number == 0 and reply is not None and not reply.interrupted
        text = INTERRUPTED if begun else NOT_RUN
        message = store.messages.add(
            conversation, parent, "tool", text, answers=call, cause="cancelled"
        )
        yield MessageSaved(conversation, message, "tool", parent)
        parent = message
