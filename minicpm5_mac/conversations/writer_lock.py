"""Which process is streaming a reply, and whether it still lives.

Each store that streams holds an advisory lock on a small file of its own. The kernel lets go of
the lock when the process ends, however it ends: so a lock that can be had belongs to the dead,
and no process id, which may be somebody else's by now, has to be trusted.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path


class WriterLock:
    """A locked file, held until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name = secrets.token_hex(8)
        self._path = folder / self.name
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let go and remove the file. May be called twice."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def is_alive(folder: Path, name: str) -> bool:
    """Whether the writer of that name still holds its lock; removes the file of a dead one."""
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
