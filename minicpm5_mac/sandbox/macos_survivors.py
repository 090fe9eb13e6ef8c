"""Processes of a run that left its tree, found on macOS by the one thing they cannot shed.

A daemonised process has another parent, session and group, and may have changed its environment,
but it stays in the sandbox it was started in. `sandbox_check` (libsystem_sandbox; no header is
published, the signature is that of Chromium's seatbelt code) asks the kernel what another process
may do: only this run's profile allows a write in this run's folder while it denies `/`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

import psutil

# libsystem_sandbox: enum sandbox_filter_type, and a flag that keeps the question out of the log.
FILTER_PATH = 1
NO_REPORT = 0x40000000
_ROUNDS = 5  # one that is just forking shows up in the next round


def kill(tmp: Path) -> None:
    """Kill every process of this user whose sandbox is that of the run with the folder `tmp`."""
    for _ in range(_ROUNDS):
        found = [pid for pid in _own_processes() if _belongs(pid, tmp)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _own_processes() -> list[int]:
    mine = os.getuid()
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.uids().real == mine:
                found.append(process.pid)
    return found


def _belongs(pid: int, tmp: Path) -> bool:
    return _allowed(pid, tmp / "probe") and not _allowed(pid, Path("/probe"))


def _allowed(pid: int, path: Path) -> bool:
    library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    # The path is a variadic argument; declared fixed ones make ctypes pass it as such on arm64.
    library.sandbox_check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.sandbox_check.restype = ctypes.c_int
    verdict = library.sandbox_check(
        pid,
        b"file-write-create",
        FILTER_PATH | NO_REPORT,
        ctypes.c_char_p(os.fsencode(path)),
    )
    return verdict == 0


def sandboxed(pid: int) -> bool:
    """Whether the process is in any sandbox at all."""
    library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
    library.sandbox_check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    return library.sandbox_check(pid, None, NO_REPORT) == 1
