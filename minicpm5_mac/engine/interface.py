"""What every engine offers, in this process or in one of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from minicpm5_mac.events import EngineStopped, Event
from minicpm5_mac.request import ReplyRequest


class Engine(Protocol):
    """One loaded model. One reply at a time; `cancel` and `answer_now` come from other threads."""

    def start(self) -> Iterator[Event]:
        """Fetch and load the model. The last event is ModelReady or ModelFailed.

        Calling it again after EngineStopped starts the model anew.
        """
        ...

    def reply(self, request: ReplyRequest) -> Iterator[Event]:
        """Stream one reply. Blocks between events; the last event is always one ReplyEnd.

        An engine that dies yields EngineStopped and then ReplyEnd("failed", "error").
        """
        ...

    def cancel(self) -> None:
        """End the running reply within one token or prefill chunk; what was said is kept."""
        ...

    def answer_now(self) -> None:
        """Close the running reply's thinking block as a spent budget does."""
        ...

    def stopped(self) -> EngineStopped | None:
        """How the engine ended by itself while no reply ran; each end is told once.

        For a front end to ask now and then between replies, never during one.
        """
        ...

    def close(self) -> None:
        """End it all and free the memory. May be called twice."""
        ...
