"""Where the running reply stands, folded from its events: what the status line shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from minicpm5_mac import events
from minicpm5_mac.events import Event, Usage

NO_USAGE = Usage()


class Phase(Enum):
    """What the model is doing."""

    IDLE = "idle"
    STARTING = "starting"
    READING = "reading"
    THINKING = "thinking"
    ANSWERING = "answering"
    ASKING = "asking"
    RUNNING = "running"


@dataclass(frozen=True)
class ReplyState:
    """A reply's phase and counts. thinking_budget: None is no limit.

    read, to_read: prompt tokens in this prefill; usage: the latest, kept after the end.
    tool: the name of the one that runs or waits for the user's word.
    """

    phase: Phase = Phase.IDLE
    usage: Usage = NO_USAGE
    read: int = 0
    to_read: int = 0
    slow_seconds: float = 0.0
    tool: str = ""

    @property
    def running(self) -> bool:
        return self.phase is not Phase.IDLE

    def begun(self) -> ReplyState:
        """A new reply was asked for; the counts of the last one stay until new ones come."""
        return ReplyState(phase=Phase.STARTING, usage=self.usage)

    def stopped(self) -> ReplyState:
        """No reply runs, however the last one ended."""
        return ReplyState(usage=self.usage)

    def after(self, batch: Iterable[Event]) -> ReplyState:
        """The state once these events have happened."""
        state = self
        for event in batch:
            state = state._after_one(event)
        return state

    def _after_one(self, event: Event) -> ReplyState:
        match event:
            case events.PromptProgress(done=done, total=total):
                return replace(
                    self, phase=Phase.READING, read=done, to_read=total, slow_seconds=0.0
                )
            case events.Reasoning():
                return replace(self, phase=Phase.THINKING, slow_seconds=0.0)
            case events.ThinkingClosed() | events.Answer() | events.CallStarted():
                return replace(self, phase=Phase.ANSWERING, slow_seconds=0.0)
            case events.ApprovalWanted(call=call):
                return replace(self, phase=Phase.ASKING, tool=call.name, slow_seconds=0.0)
            case events.ToolStarted(call=call):
                return replace(self, phase=Phase.RUNNING, tool=call.name, slow_seconds=0.0)
            case events.ToolFinished() | events.StepStarted():
                return replace(self, phase=Phase.STARTING, tool="")
            case events.Progress(usage=usage) | events.StepEnded(usage=usage):
                return replace(self, usage=usage, slow_seconds=0.0)
            case events.EngineSlow(seconds=seconds):
                return replace(self, slow_seconds=seconds)
            case events.ReplyEnd(usage=usage):
                kept = usage if usage != NO_USAGE else self.usage
                return ReplyState(usage=kept)
            case events.EngineStopped():
                return ReplyState(usage=self.usage)
            case _:
                return self
