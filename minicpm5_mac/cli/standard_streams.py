"""Standard streams that are closed, or whose disk is full, are the caller's affair, not a fault.

Python leaves a stream that was closed by the caller as None, and its descriptor free for the next
file, be it a store. Here every descriptor is taken and every stream is there: what is read is
empty, what is written to standard error is lost, what is written to standard output fails.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

from minicpm5_mac.failure import Failure


class OutputFailure(Failure):
    """Standard output cannot be written, so nothing more can be told there."""


def guard_streams() -> None:
    """Put streams that fail as described into the place of those that were not replaced already.

    A terminal is left alone: it has neither fault, and the app draws on it.
    """
    _take_descriptors()
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = _guarded(sys.stdout, sys.__stdout__, _Output(1, "wb", closefd=False))
    sys.stderr = _guarded(sys.stderr, sys.__stderr__, _Errors(2, "wb", closefd=False))


def silence_output() -> None:
    """Let what is still buffered go nowhere, so that it does not fail again at exit."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _Output(io.FileIO):
    def write(self, data, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise  # the reader went away, which is no failure
        except OSError as error:
            why = error.strerror or str(error)
            raise OutputFailure(f"standard output cannot be written: {why}.") from error


class _Errors(io.FileIO):
    def write(self, data, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def _take_descriptors() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free one is this one. Standard output is for reading: writes must fail.
            way = os.O_WRONLY if number == 2 else os.O_RDONLY
            os.set_inheritable(os.open(os.devnull, way), True)


def _guarded(old: TextIO | None, first: TextIO | None, raw: io.FileIO) -> TextIO:
    if old is None:
        return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace")
    if old is not first or old.isatty() or not isinstance(old, io.TextIOWrapper):
        return old
    unbuffered = isinstance(old.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),  # type: ignore[arg-type]
        old.encoding,
        old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
