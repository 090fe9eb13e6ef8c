"""What a command is given to read: all of it at its start, or more as long as it runs."""

from __future__ import annotations

import threading

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import MIB

MOST_WAITING = 32 * MIB


class Feed:
    """Bytes on their way to a command's standard input. Any thread may call it.

    live: more comes while the command runs, until `close`.
    """

    def __init__(self, data: bytes = b"", *, live: bool = False) -> None:
        self.live = live
        self._lock = threading.Lock()
        self._waiting = bytearray(data)
        self._closed = not live

    def put(self, data: bytes) -> None:
        """More to read. Raises Failure where the command has long stopped reading."""
        with self._lock:
            if self._closed:
                return
            if len(self._waiting) + len(data) > MOST_WAITING:
                raise Failure("the program does not read what it is sent")
            self._waiting += data

    def close(self) -> None:
        """The end: the command reads what waits, and then end-of-file."""
        with self._lock:
            self._closed = True

    def drop(self) -> None:
        """Nobody reads any longer."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def next(self, most: int) -> bytes:
        """The bytes to write now; they wait until they are `taken`."""
        with self._lock:
            return bytes(self._waiting[:most])

    def taken(self, count: int) -> None:
        """So many of them were written."""
        with self._lock:
            del self._waiting[:count]

    @property
    def waiting(self) -> bool:
        """Something is to be written."""
        with self._lock:
            return bool(self._waiting)

    @property
    def ended(self) -> bool:
        """Nothing is to be written any more."""
        with self._lock:
            return self._closed and not self._waiting
