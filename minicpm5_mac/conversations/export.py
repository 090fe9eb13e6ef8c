"""A conversation as a file: Markdown for reading, JSON for other programs.

The JSON document (`"format": "minicpm5-mac.conversation"`, `"version": 1`) holds all branches:

    id, title       the conversation's
    created, updated  ISO 8601, UTC
    head            id of the last message of the branch that is shown, or null
    settings        how the replies were asked for (model, system prompt, sampling, …)
    messages        oldest first, each with
        id, parent  parent is the message it follows, or null
        shown       whether it is on the branch that is shown
        role        "user", "assistant", "tool" or "system"
        content, reasoning  text
        tool_calls  [{"name", "arguments"}]
        attachments [{"path", "text"}], what the model saw behind the content
        finish      "complete", "truncated", "cancelled", "failed", or null
        cause       why it ended ("stop", "max_tokens", "cancelled", "crashed", …)
        usage       token counts and rates, or null
        created     ISO 8601, UTC

Fields may be added within a version; none is removed or changes its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from minicpm5_mac.conversations.fences import closed_fences, fenced
from minicpm5_mac.conversations.records import (
    CRASHED,
    Conversation,
    StoredMessage,
    with_attachments,
)
from minicpm5_mac.conversations.store import ConversationStore

FORMAT = "minicpm5-mac.conversation"
VERSION = 1

_SPEAKERS = {"user": "You", "assistant": "Assistant", "tool": "Tool result", "system": "System"}


def export_json(store: ConversationStore, conversation: str) -> str:
    """The document above, indented. Raises Failure for an unknown id."""
    stored = store.get(conversation)
    shown = {message.id for message in store.messages.path(stored.id, stored.head)}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "id": stored.id,
        "title": stored.title,
        "created": _iso(stored.created),
        "updated": _iso(stored.updated),
        "head": stored.head,
        "settings": msgspec.json.decode(stored.settings),
        "messages": [
            {"id": m.id, "parent": m.parent, "shown": m.id in shown, **_message_fields(m)}
            for m in store.messages.all(stored.id)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def export_markdown(store: ConversationStore, conversation: str, reasoning: bool = True) -> str:
    """The branch that is shown. reasoning: each reply's, folded away in a <details> block."""
    stored = store.get(conversation)
    return to_markdown(stored, store.messages.path(stored.id, stored.head), reasoning)


def to_markdown(
    conversation: Conversation, messages: Sequence[StoredMessage], reasoning: bool = True
) -> str:
    """The same for messages at hand."""
    day = datetime.fromtimestamp(conversation.created).strftime("%Y-%m-%d %H:%M")
    parts = [f"# {conversation.title}", f"*{day}*"]
    for message in messages:
        parts.append(f"## {_SPEAKERS[message.role]}")
        if reasoning and message.reasoning:
            # The block must end where we end it, whatever the model thought about HTML.
            inner = closed_fences(message.reasoning).replace("</details", "&lt;/details")
            parts.append(f"<details>\n<summary>Reasoning</summary>\n\n{inner}\n\n</details>")
        text = with_attachments(message.content, message.attachments)
        if text:
            parts.append(fenced(text) if message.role == "tool" else closed_fences(text))
        parts += [
            f"Call of `{call.name}`:\n\n{fenced(_json(call.arguments), 'json')}"
            for call in message.tool_calls
        ]
        if message.interrupted:
            parts.append(f"*({_ending(message)})*")
    return "\n\n".join(parts) + "\n"


def _message_fields(message: StoredMessage) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "reasoning": message.reasoning,
        "tool_calls": message.tool_calls,
        "attachments": message.attachments,
        "finish": message.finish,
        "cause": message.cause,
        "usage": message.usage,
        "created": _iso(message.created),
    }


def _ending(message: StoredMessage) -> str:
    if message.cause == CRASHED:
        return "interrupted by a crash"
    return {"cancelled": "stopped", "truncated": "cut off", "failed": "failed"}[
        message.finish or "failed"
    ]


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
