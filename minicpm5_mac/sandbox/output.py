"""A command's output: bounded in memory, bounded on disk, and safe for a terminal."""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from minicpm5_mac.sandbox.policy import Limits

# ECMA-48: CSI is ESC [ parameters intermediates final; OSC, DCS, SOS, PM and APC are strings that
# end in ST (ESC \) or, for xterm, BEL. OSC 52 writes the clipboard. Then other two-byte escapes.
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|(?=\x1b)|\Z)"
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\|(?=\x1b)|\Z)"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
BINARY_SHARE = 0.1  # of undecodable characters or control bytes in the sample; text has none


@dataclass(frozen=True)
class KeptOutput:
    """What is left of a stream: its first and last bytes, exact counts, and the spill file.

    total: bytes written by the command that were read. spilled: bytes in `spill`, which holds
    the beginning of the stream; None where head and tail are all there is.
    """

    head: bytes
    tail: bytes
    total: int
    spill: Path | None = None
    spilled: int = 0

    @property
    def omitted(self) -> int:
        """Bytes between head and tail."""
        return self.total - len(self.head) - len(self.tail)

    @property
    def binary(self) -> bool:
        """Whether this is not text, and should be named instead of shown."""
        return is_binary(self.head)

    def text(self) -> str:
        """Printable text for a model or a screen, with the exact number of bytes left out."""
        if self.binary:
            return f"[{self.total} bytes of binary output, not shown]"
        if not self.omitted:
            return plain_text(self.head + self.tail)
        return (
            f"{plain_text(self.head)}\n[… {self.omitted} bytes left out …]\n{plain_text(self.tail)}"
        )


class OutputKeeper:
    """Takes a stream chunk by chunk and keeps its head and tail; the rest goes to a file.

    open_spill makes the spill file; it is called when the output outgrows head and tail. None:
    what is between them is lost.
    Memory stays below head + tail + one chunk, whatever the command writes.
    """

    def __init__(
        self, limits: Limits, open_spill: Callable[[], tuple[Path, BinaryIO]] | None
    ) -> None:
        self._limits = limits
        self._open_spill = open_spill
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._spill_path: Path | None = None
        self._spill: BinaryIO | None = None
        self._spilled = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self._open_spill is not None and self._spill is None and self.total > self._room:
            self._spill_path, self._spill = self._open_spill()
            self._write(bytes(self._head) + b"".join(self._tail))
        if self._spill is not None:
            self._write(chunk)
        taken = self._limits.output_head_bytes - len(self._head)
        if taken > 0:
            self._head += chunk[:taken]
            chunk = chunk[taken:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
            while self._tail_size - len(self._tail[0]) >= self._limits.output_tail_bytes:
                self._tail_size -= len(self._tail.popleft())

    def kept(self) -> KeptOutput:
        """The result; closes the spill file."""
        if self._spill is not None:
            self._spill.close()
        tail = b"".join(self._tail)[-self._limits.output_tail_bytes :]
        return KeptOutput(bytes(self._head), tail, self.total, self._spill_path, self._spilled)

    @property
    def _room(self) -> int:
        return self._limits.output_head_bytes + self._limits.output_tail_bytes

    def _write(self, data: bytes) -> None:
        data = data[: max(0, self._limits.spill_bytes - self._spilled)]
        if data and self._spill is not None:
            self._spill.write(data)
            self._spilled += len(data)


def plain_text(data: bytes | str) -> str:
    """Text without control sequences; tab and line feed stay, CR and CR LF become line feeds.

    Bytes are taken as UTF-8, and what is not becomes U+FFFD. The result can go to a terminal:
    it holds no C0 or C1 control and no escape sequence, also none that was cut off.
    """
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    text = _ESCAPE.sub("", text)
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_binary(sample: bytes) -> bool:
    """Whether bytes are no text in UTF-8: a NUL, or many that decode to nothing printable."""
    if b"\0" in sample:
        return True
    # Not final: the last character may be cut in the middle by the cap.
    text, _ = codecs.utf_8_decode(sample, "replace", False)
    odd = sum(c == "�" or (c < " " and c not in "\t\n\r\x1b\b\f\a") for c in text)
    return odd > BINARY_SHARE * max(1, len(text))
