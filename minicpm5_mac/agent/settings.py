"""How a session asks for its replies."""

from __future__ import annotations

from typing import Literal

import msgspec

from minicpm5_mac.request import Sampling


class SessionSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds for every reply until it is changed; it is stored with the conversation.

    model: as the user named it. thinking: tokens a turn may think; 0 is off, None no limit.
    max_tokens: tokens a reply may have, thinking included; None is what the context holds.
    when_full: when the conversation no longer fits, `ask` (the reply ends with ContextFull) or
    `shorten` the history at once.
    """

    model: str
    system_prompt: str = ""
    thinking: int | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    keep_reasoning: bool = True
    when_full: Literal["ask", "shorten"] = "ask"


def encode_settings(settings: SessionSettings) -> bytes:
    """JSON for the store."""
    return msgspec.json.encode(settings)


def decode_settings(stored: bytes) -> SessionSettings | None:
    """The settings a conversation was last used with; None where it has none we can read."""
    try:
        return msgspec.json.decode(stored, type=SessionSettings)
    except msgspec.MsgspecError:
        return None
