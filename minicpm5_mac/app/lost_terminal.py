"""Notices a terminal that is gone, also where no signal says so.

A lost ssh connection or a closed window sends SIGHUP, but only to a process whose controlling
terminal it was. Without it Textual 8.2 would wait for its writing thread for ever, its reading
thread would spin, and the model would stay in memory.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable


def when_lost(descriptor: int, tell: Callable[[], None]) -> None:
    """Call `tell`, from a thread of its own, once the terminal's other end is closed.

    Does nothing where poll() cannot watch a terminal (POLLNVAL, on some systems).
    """

    def watch() -> None:
        poll = select.poll()
        poll.register(descriptor, 0)  # only what is always reported: hang-up and error
        found = poll.poll()
        if any(event & select.POLLHUP for _, event in found):
            tell()

    threading.Thread(target=watch, name="lost-terminal", daemon=True).start()
