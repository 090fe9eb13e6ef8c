"""Where a turn waits for the user's word, and where the word comes in from another thread."""

from __future__ import annotations

import threading

from minicpm5_mac.agent.approval import Decision


class ApprovalDesk:
    """One question at a time. Any thread may call it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: int | None = None
        self._decision: Decision | None = None
        self._closed = False

    def ask(self, call: int) -> None:
        """From now on a decision on this call is taken."""
        with self._changed:
            self._asked, self._decision = call, None

    def decide(self, call: int, decision: Decision) -> bool:
        """The user's word. False where that call does not wait for one (any more)."""
        with self._changed:
            if self._asked != call or self._decision is not None:
                return False
            self._decision = decision
            self._changed.notify_all()
            return True

    def wait(self) -> Decision | None:
        """The decision on what was asked; None where the turn was ended meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._decision is not None or self._closed)
            self._asked = None
            return self._decision

    def close(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
