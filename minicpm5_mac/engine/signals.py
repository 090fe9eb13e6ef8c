"""What other threads ask of a running reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Signals:
    """Set from any thread, read by the thread that writes the reply, once a token or chunk."""

    cancelled: bool = False
    answer_now: bool = False
