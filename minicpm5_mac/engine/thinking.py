"""The thinking budget of one turn: when the block must close, and with which ids.

Rules and their reasons: a budget is spent at N tokens; then the close waits for a whole character
and, for at most 32 tokens, for the end of a line, and never cuts a call in half (which may add at
most 256 tokens). The close is fed as ids on the same cache: a sentence, a newline, the id of
`</think>`, a blank line. After it the model may neither open nor close a block in this turn.
Tokens are counted a turn, not a block, so that agent steps share one budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minicpm5_mac.model.tokenizer import Tokenizer

# Tokens that the close may wait for the end of a line, and for the end of a call.
LINE_GRACE = 32
CALL_GRACE = 256
# The last tokens of the grace in which any whole character will do: UTF-8 has four bytes at most.
CHARACTER_GRACE = 4

# What an answer is left at least when a reply's length is capped: a quarter, at most this many.
ANSWER_ROOM = 1024

CLOSING_SENTENCE = "I have thought enough; here is the answer."

Cause = Literal["budget", "answer_now", "loop", "room"]


@dataclass(frozen=True)
class Place:
    """Where the reply stands after a token, as the parser and the detokenizer see it."""

    whole_character: bool
    line_end: bool
    in_call: bool


def room_for_thinking(most_tokens: int) -> int:
    """Thinking tokens that a reply of at most `most_tokens` may hold, so that an answer fits."""
    return max(0, most_tokens - min(ANSWER_ROOM, max(1, most_tokens // 4)))


class ThinkingBudget:
    """Counts a turn's thinking and says when to close.

    budget: tokens a turn, None without limit. spent: by earlier steps of the turn. room: what the
    reply's own length allows (`room_for_thinking`); its grace lies inside it, not behind it.
    """

    def __init__(self, budget: int | None, spent: int = 0, room: int | None = None) -> None:
        self.budget = budget
        self.tokens = spent
        self._spent = spent
        self._room = room
        self._due: int | None = None
        self._cause: Cause | None = None

    def ask(self, cause: Cause) -> None:
        """Spend the budget now, because the user or a loop says so."""
        if self._due is None:
            self._due, self._cause = self.tokens, cause

    def count(self) -> None:
        """The model wrote one thinking token."""
        self.tokens += 1
        if self._due is not None:
            return
        if self.budget is not None and self.tokens >= self.budget:
            self._due, self._cause = self.tokens, "budget"
        elif self._room is not None and self._used >= max(0, self._room - LINE_GRACE):
            self._due, self._cause = self.tokens, "room"

    @property
    def _used(self) -> int:
        return self.tokens - self._spent

    def close_now(self, place: Place) -> Cause | None:
        """Why the block must be closed right after this token, if it must."""
        if self._due is None or self._cause is None:
            return None
        over = self.tokens - self._due
        if self._room is not None and self._used >= self._room:
            return self._cause
        if self._cause == "loop":
            return self._cause if place.whole_character else None
        if place.in_call:
            return self._cause if over >= CALL_GRACE else None
        if not place.whole_character:
            return self._cause if over >= LINE_GRACE else None
        if place.line_end or over >= LINE_GRACE - CHARACTER_GRACE:
            return self._cause
        return None


def closing_ids(tokenizer: Tokenizer, *, at_line_start: bool) -> tuple[list[int], str]:
    """The ids that close a block, and their text for the parser."""
    before = f"{'' if at_line_start else chr(10)}{CLOSING_SENTENCE}\n"
    close = tokenizer.think_close
    if close is None:
        raise ValueError("this vocabulary has no think tags")
    ids = [*tokenizer.encode_text(before), close, *tokenizer.encode_text("\n\n")]
    return ids, f"{before}</think>\n\n"
