"""Download progress on a command line: one line rewritten, or sparse lines in a log."""

from __future__ import annotations

import time
from typing import TextIO

from minicpm5_mac.app.model_state import download_text
from minicpm5_mac.events import DownloadProgress

# Seconds between lines where they cannot be rewritten.
SPARSE = 10.0


class DownloadLine:
    """Shows progress on one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rewrites = stream.isatty()
        self._written = -SPARSE
        self._width = 0
        self._unwritten = ""

    def show(self, event: DownloadProgress) -> None:
        """Write where the download stands, such as "MiniCPM5-2B · 36 % · 512 MB of 1.4 GB"."""
        text = f"{event.name} · {download_text(event)}"
        if self._rewrites:
            self._stream.write("\r" + text.ljust(self._width))
            self._stream.flush()
            self._width = len(text)
        elif time.monotonic() - self._written >= SPARSE:
            self._write(text)
        else:
            self._unwritten = text

    def finish(self) -> None:
        """Leave the line; a log gets the last word of a download, however fast it was."""
        if self._rewrites and self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0
        elif self._unwritten:
            self._write(self._unwritten)

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
        self._written = time.monotonic()
        self._unwritten = ""
