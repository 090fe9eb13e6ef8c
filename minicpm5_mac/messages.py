"""What a conversation is made of: messages, tool calls, and the ids that were really fed.

msgspec structs (frozen): they travel as JSON between the app and the model process and into the
conversation store. Front ends import this without paying for MLX or Textual.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True):
    """A call that was read whole, of a declared tool, with arguments its schema accepts."""

    name: str
    arguments: dict[str, Any]


class TurnIds(msgspec.Struct, frozen=True):
    """The token ids behind one assistant message, exactly as the model saw them.

    Rendering a history again is not an extension of what the model has seen, so the ids are
    kept: the prompt of a later turn is the concatenation of `prompt + generated` over the
    assistant messages of the conversation, from the last one whose `whole` is true.

    fingerprint: names the tokenizer and the template; ids of another fingerprint are not reused.
    whole: `prompt` starts at the first token of the conversation; otherwise it continues where
        the previous assistant message's `generated` ends.
    prompt: ids fed before this reply (the new user turn, tool results, the reply's opener).
    generated: ids of the reply: sampled ones and ids that the engine fed (a forced close of the
        thinking block), without the token that ended it.
    """

    fingerprint: str
    whole: bool
    prompt: tuple[int, ...]
    generated: tuple[int, ...]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation.

    content: the text; for an assistant, the answer without reasoning and calls.
    reasoning: an assistant's thinking, empty where there was none.
    ids: only on assistant messages, and only where the engine reported them.
    """

    role: Role
    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    ids: TurnIds | None = None
