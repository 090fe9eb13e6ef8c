"""What the store keeps and gives back: conversations, their messages, attached files."""

from __future__ import annotations

from typing import Literal

import msgspec

from minicpm5_mac.conversations.fences import fenced
from minicpm5_mac.events import Finish, Usage
from minicpm5_mac.messages import Message, Role, ToolCall, TurnIds

CRASHED = "crashed"
"""The `cause` of a reply whose process died while it was streaming."""


class Attachment(msgspec.Struct, frozen=True):
    """A text file that goes with a user's message: the path as the user gave it, and the text."""

    path: str
    text: str


class Conversation(msgspec.Struct, frozen=True):
    """One conversation, without its messages.

    id: 20 hexadecimal digits. head: the message that the conversation ends with as it is shown;
    None while it is empty. messages: how many are stored, all branches together.
    created, updated: seconds since 1970, UTC. settings: JSON that the session keeps for itself.
    """

    id: str
    title: str
    created: float
    updated: float
    messages: int
    head: int | None
    settings: bytes = b"{}"


class StoredMessage(msgspec.Struct, frozen=True):
    """One message as stored.

    parent: the message before it, None for a first one. siblings: the ids of all messages with
    the same parent, itself included, oldest first: its branches.
    state: `streaming` while a living process still writes it.
    finish, cause, usage: as in ReplyEnd, for assistants; cause may also be CRASHED.
    Of a tool's result, tool_calls is the one call that it answers (empty where that was no valid
    call), and cause its outcome as in ToolFinished.
    """

    id: int
    parent: int | None
    role: Role
    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    siblings: tuple[int, ...] = ()
    state: Literal["streaming", "done"] = "done"
    finish: Finish | None = None
    cause: str = ""
    usage: Usage | None = None
    ids: TurnIds | None = None
    created: float = 0.0

    @property
    def interrupted(self) -> bool:
        """The reply was cut or cancelled: it can be continued."""
        return self.role == "assistant" and self.finish in ("truncated", "cancelled", "failed")


def as_message(stored: StoredMessage, ids: TurnIds | None = None) -> Message:
    """What the model is to see of a stored message: attached files become part of the text."""
    return Message(
        role=stored.role,
        content=with_attachments(stored.content, stored.attachments),
        reasoning=stored.reasoning,
        tool_calls=stored.tool_calls,
        ids=ids,
    )


def with_attachments(text: str, attachments: tuple[Attachment, ...]) -> str:
    """The user's text, then each file under its path, in a fence longer than any inside it."""
    files = (f"File {a.path}:\n{fenced(a.text.rstrip())}" for a in attachments)
    return "\n\n".join(part for part in (text, *files) if part)
