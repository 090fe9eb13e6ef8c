"""The words of the status line: model, phase, thinking, context, speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from minicpm5_mac.app.reply_state import Phase, ReplyState

Tone = Literal["plain", "muted", "accent", "warning", "error"]

NO_REPLY = ReplyState()
GAUGE_CELLS = 8
NEARLY_FULL = 0.85
"""Share of the context from which the gauge warns: about one more long exchange fits."""


@dataclass(frozen=True)
class Segment:
    """rank: 0 is always shown; in a narrow window the highest rank goes first."""

    text: str
    tone: Tone = "muted"
    rank: int = 0


@dataclass(frozen=True)
class StatusView:
    """All that the status line shows.

    model: its name; model_stage: what it is doing before it is ready, empty afterwards;
    model_fault: "stopped" or "not loaded", empty while all is well.
    tools: what they may do unasked; empty in plain chat.
    can_think: the model knows how to; thinking: tokens allowed in a turn, 0 off, None no limit.
    """

    model: str = ""
    model_stage: str = ""
    model_fault: str = ""
    can_think: bool = True
    thinking: int | None = None
    context_limit: int = 0
    tools: str = ""
    reply: ReplyState = NO_REPLY


SegmentMaker = Callable[[StatusView], Segment | None]


def model(view: StatusView) -> Segment | None:
    if view.model_fault:
        return Segment(f"{view.model} {view.model_fault}", "error")
    if view.model_stage:
        return Segment(view.model_stage, "accent")
    return Segment(view.model, "plain", rank=1) if view.model else None


def phase(view: StatusView) -> Segment | None:
    reply = view.reply
    if reply.running and reply.slow_seconds:
        return Segment(f"no token for {reply.slow_seconds:.0f} s", "warning")
    match reply.phase:
        case Phase.STARTING:
            return Segment("waiting", "accent")
        case Phase.READING:
            return Segment(f"reading {reply.read:,} of {reply.to_read:,}", "accent")
        case Phase.ANSWERING:
            return Segment("answering", "accent")
        case Phase.ASKING:
            return Segment("waits for your word", "warning")
        case Phase.RUNNING:
            return Segment(f"running {reply.tool}", "accent")
    return None


def tools(view: StatusView) -> Segment | None:
    """The mode that approvals go by: whatever else has no room, this has."""
    return Segment(view.tools, "accent") if view.tools else None


def thinking(view: StatusView) -> Segment | None:
    """Tokens thought, of the budget, while it thinks; otherwise what is allowed."""
    usage = view.reply.usage
    if view.reply.phase is Phase.THINKING:
        budget = view.thinking if usage.thinking_budget is None else usage.thinking_budget
        of = f" of {budget:,}" if budget else ""
        return Segment(f"thinking {usage.thinking_tokens:,}{of}", "accent")
    if not view.can_think:
        return None
    if view.thinking == 0:
        return Segment("thinking off", rank=3)
    if view.thinking is not None:
        return Segment(f"thinks ≤ {view.thinking:,}", rank=3)
    return Segment("thinking on", rank=3)


def context(view: StatusView) -> Segment | None:
    usage = view.reply.usage
    limit = usage.context_limit or view.context_limit
    if not limit:
        return None
    share = min(1.0, usage.context_used / limit)
    filled = round(share * GAUGE_CELLS)
    if usage.context_used and not filled:
        filled = 1
    gauge = "█" * filled + "░" * (GAUGE_CELLS - filled)
    tone: Tone = "warning" if share >= NEARLY_FULL else "muted"
    return Segment(f"context {gauge} {_percent(share)} of {_count(limit)}", tone, rank=1)


def rate(view: StatusView) -> Segment | None:
    usage = view.reply.usage
    if view.reply.phase is Phase.READING or not usage.decode_rate:
        return None
    return Segment(f"{usage.decode_rate:.1f} tok/s", rank=2)


def first_token(view: StatusView) -> Segment | None:
    seconds = view.reply.usage.time_to_first_token
    if not seconds or view.reply.phase in (Phase.STARTING, Phase.READING):
        return None
    return Segment(f"first token {seconds:.2f} s", rank=4)


SEGMENTS: tuple[SegmentMaker, ...] = (tools, model, phase, thinking, context, rate, first_token)
"""In the order they stand. A front end with more to say passes a longer tuple."""

SEPARATOR = " · "


def fit(segments: Sequence[Segment], width: int) -> list[Segment]:
    """The segments that have room in `width` cells: the least important ones leave first."""
    kept = list(segments)
    while kept and _length(kept) > width:
        droppable = max(kept, key=lambda segment: segment.rank)
        if droppable.rank == 0:
            break
        kept.remove(droppable)
    return kept


def _length(segments: Sequence[Segment]) -> int:
    return sum(len(segment.text) for segment in segments) + len(SEPARATOR) * (len(segments) - 1)


def _percent(share: float) -> str:
    return "<1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def _count(tokens: int) -> str:
    return f"{tokens / 1024:.0f}K" if tokens >= 1024 and tokens % 1024 == 0 else f"{tokens:,}"
