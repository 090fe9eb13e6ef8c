"""One stored message as the transcript needs it."""

from __future__ import annotations

import msgspec

from minicpm5_mac.messages import Message


class ToolResult(msgspec.Struct, frozen=True):
    """What became of a call. name: its tool; outcome, text: as in events.ToolFinished."""

    name: str
    outcome: str
    text: str


class Entry(msgspec.Struct, frozen=True):
    """A message of the conversation that is shown, or a notice between two.

    message_id: the store's id, "" where the message has none yet.
    thinking_tokens, thinking_budget, thinking_cause: what is known of the thinking block; the
        cause is events.ThinkingClosed's, or "stopped" where the reply ended within it.
    end: why a reply ended, when that is worth saying ("stopped by you"), else "".
    results: of a reply's calls, in their order; fewer where the app ended before they were done.
    continues: a reply that goes on after results of tools, in the same turn.
    versions: the number of this one and how many there are, (0, 0) where that is not known.
    notice: the text of a notice; then `message` is None.
    """

    message_id: str = ""
    message: Message | None = None
    thinking_tokens: int | None = None
    thinking_budget: int | None = None
    thinking_cause: str | None = None
    end: str = ""
    results: tuple[ToolResult, ...] = ()
    continues: bool = False
    versions: tuple[int, int] = (0, 0)
    notice: str = ""
