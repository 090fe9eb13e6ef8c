"""How far a download is, how fast, and how long it will take: bytes in, events out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from minicpm5_mac.events import DownloadProgress, Event

OnEvent = Callable[[Event], None]

_EVERY = 0.25  # seconds between events
_WINDOW = 5.0  # seconds that the speed is taken over


class DownloadMeter:
    """Counts bytes of one download, which may be several files, and reports a few times a second.

    total_bytes: None where it is not known. Speed counts what came over the network in the last
    seconds; bytes that were there before (`found`) count as done, not as speed.
    """

    def __init__(
        self,
        name: str,
        total_bytes: int | None,
        on_event: OnEvent,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._total = total_bytes
        self._on_event = on_event
        self._clock = clock
        self._done = 0
        self._received = 0
        self._reported = float("-inf")
        self._samples: deque[tuple[float, int]] = deque([(clock(), 0)])

    def found(self, count: int) -> None:
        """Bytes that need not be fetched; negative where they turned out to be useless."""
        self._done += count
        self.report()

    def received(self, count: int) -> None:
        """Bytes that just came in."""
        self._done += count
        self._received += count
        if self._clock() - self._reported >= _EVERY:
            self.report()

    def report(self) -> None:
        """Send an event now."""
        now = self._clock()
        self._reported = now
        self._samples.append((now, self._received))
        while len(self._samples) > 2 and now - self._samples[0][0] > _WINDOW:
            self._samples.popleft()
        began, before = self._samples[0]
        speed = (self._received - before) / (now - began) if now > began else 0.0
        left = None
        if self._total is not None and speed > 0:
            left = max(0, self._total - self._done) / speed
        self._on_event(DownloadProgress(self._name, self._done, self._total, speed, left))
