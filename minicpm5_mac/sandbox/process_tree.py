"""Every process a run has started: counted, measured, and ended.

On Linux the sandbox's process namespace ends them all with its first process, which this module
only finds. macOS has no such namespace: what was ever seen below the run is remembered by process
id and start time (an id is given out again), so that a process that left by `setsid` and a double
fork is still known; `macos_survivors` finds those that were never seen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

import psutil

END_SECONDS = 2.0


@dataclass(frozen=True)
class TreeSize:
    """What the watchdog compares with the limits: live processes, and their memory in bytes."""

    processes: int
    memory_bytes: int


class ProcessTree:
    """The tree below `root`, the process the run was started as (leader of its own session)."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, psutil.Process] = {}

    def look(self) -> list[psutil.Process]:
        """The live members, newly found ones included; the root is one of them."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if self._root not in self._seen:
                self._seen[self._root] = psutil.Process(self._root)
        by_parent: dict[int, list[int]] = {}
        # One pass over the process table; `children()` per member would make a pass each.
        for process in psutil.process_iter(["ppid"]):
            by_parent.setdefault(process.info["ppid"], []).append(process.pid)
        waiting = [process.pid for process in self._seen.values() if process.is_running()]
        alive = set(waiting)
        while waiting:
            for child in by_parent.get(waiting.pop(), ()):
                if child not in alive:
                    alive.add(child)
                    waiting.append(child)
                    with contextlib.suppress(psutil.NoSuchProcess):
                        self._seen[child] = psutil.Process(child)
        return [self._seen[pid] for pid in alive if pid in self._seen]

    def size(self) -> TreeSize:
        members = self.look()
        memory = 0
        for process in members:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                memory += process.memory_info().rss
        return TreeSize(len(members), memory)

    def signal(self, number: signal.Signals, spare: frozenset[int] = frozenset()) -> None:
        """Send a signal to every member but `spare`."""
        for process in self.look():
            if process.pid not in spare:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    process.send_signal(number)

    def kill(self) -> None:
        """Kill all members, again until none is found or END_SECONDS have passed."""
        until = time.monotonic() + END_SECONDS
        while True:
            # Found before anything is killed: who loses its parent is no longer below the root.
            alive = [process for process in self.look() if not _is_zombie(process)]
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._root, signal.SIGKILL)
            if not alive or time.monotonic() > until:
                return
            for process in alive:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    process.kill()
            time.sleep(0.01)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
