"""What to leave out when a conversation no longer fits its context.

Oldest reasoning goes first, then oldest turns; the system prompt and the last turn stay. Before
both goes an earlier message that got no reply and is too long to stay whatever else is left out. It
is done once, down to about 70 %, not a little on every turn: each cut refills the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minicpm5_mac.messages import Message

SHORTEN_TO = 0.7


@dataclass(frozen=True)
class Cost:
    """Tokens of one message: its text, and its reasoning apart."""

    text: int
    reasoning: int


@dataclass(frozen=True)
class Cut:
    """Indices of messages whose reasoning is left out, and of those left out whole."""

    without_reasoning: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()


def turns(messages: Sequence[Message]) -> list[range]:
    """Indices of each turn: a user message and all that answers it, which may be nothing.

    A system prompt is in none.
    """
    starts = [i for i, m in enumerate(messages) if m.role == "user"]
    return [
        range(start, end) for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)
    ]


def plan_cut(messages: Sequence[Message], costs: Sequence[Cost], surplus: int) -> Cut:
    """The least that frees `surplus` tokens, oldest first.

    The last turn and the exchange before it stay whole; where that is not enough, the exchange
    before the last turn goes too. What is left may still be too much: the caller looks.
    """
    groups = turns(messages)
    last_exchange = groups[-2:]
    protected = {i for group in last_exchange for i in group}
    bare: list[int] = []
    out: list[int] = []
    freed = 0
    room = sum(cost.text + cost.reasoning for cost in costs) - surplus
    for group in groups[:-1]:
        if freed < surplus and len(group) == 1 and costs[group[0]].text > room:
            out.append(group[0])
            freed += costs[group[0]].text
    for i, message in enumerate(messages):
        if freed >= surplus:
            break
        if message.role == "assistant" and message.reasoning and i not in protected:
            bare.append(i)
            freed += costs[i].reasoning
    for group in groups[:-1]:
        if freed >= surplus:
            break
        for i in set(group) - set(out):
            freed += costs[i].text + (0 if i in bare else costs[i].reasoning)
            out.append(i)
    return Cut(tuple(i for i in bare if i not in out), tuple(sorted(out)))
