"""The request for a reply, made from the stored messages on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.conversations.records import StoredMessage, as_message
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest


def build_request(
    path: Sequence[StoredMessage],
    settings: SessionSettings,
    *,
    tools: tuple[dict[str, Any], ...] = (),
    thinking_spent: int = 0,
    shorten: bool = False,
    continue_last: bool = False,
) -> ReplyRequest:
    """Ask for the reply to the last message of `path`, or for more of it (`continue_last`).

    Each assistant message brings the ids that were recorded with it, from the last whole record
    on: what came before that one is in it.
    """
    whole = [at for at, stored in enumerate(path) if stored.ids and stored.ids.whole]
    start = whole[-1] if whole else len(path)
    messages = [
        as_message(stored, stored.ids if at >= start else None) for at, stored in enumerate(path)
    ]
    if settings.system_prompt:
        messages.insert(0, Message("system", settings.system_prompt))
    return ReplyRequest(
        messages=tuple(messages),
        tools=tools,
        sampling=settings.sampling,
        thinking=settings.thinking,
        thinking_spent=thinking_spent,
        max_tokens=settings.max_tokens,
        keep_reasoning=settings.keep_reasoning,
        when_full="shorten" if shorten or settings.when_full == "shorten" else "stop",
        continue_last=continue_last,
    )
