"""Download progress on a command line: one line rewritten, or sparse lines in a log."""

from __future__ import annotations

import time
from typing import TextIO

from minicpm5_mac.events import DownloadProgress

# Seconds between lines where they cannot be rewritten.
SPARSE = 10.0


def progress_text(event: DownloadProgress) -> str:
    """Such as "MiniCPM5-2B  512.0 of 1416.0 MB  36 %  21.3 MB/s  42 s left"."""
    done = event.done_bytes / 1e6
    parts = [event.name]
    if event.total_bytes:
        parts.append(f"{done:,.1f} of {event.total_bytes / 1e6:,.1f} MB")
        parts.append(f"{100 * event.done_bytes / event.total_bytes:.0f} %")
    else:
        parts.append(f"{done:,.1f} MB")
    parts.append(f"{event.bytes_per_second / 1e6:.1f} MB/s")
    if event.seconds_left is not None:
        parts.append(f"{event.seconds_left:,.0f} s left")
    return "  ".join(parts)


class DownloadLine:
    """Shows progress on one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rewrites = stream.isatty()
        self._shown = 0.0
        self._width = 0

    def show(self, event: DownloadProgress) -> None:
        """Write where the download stands."""
        now = time.monotonic()
        text = progress_text(event)
        if self._rewrites:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        elif now - self._shown >= SPARSE:
            self._shown = now
            self._stream.write(text + "\n")
        self._stream.flush()

    def finish(self) -> None:
        """Leave the line."""
        if self._rewrites and self._width:
            self._stream.write("\n")
            self._stream.flush()
        self._width = 0
