"""A process that outlives a killed app just long enough to end what it had running.

SIGKILL leaves the app no time. On Linux the kernel ends a sandbox with its parent; macOS has
nothing like it, and on both the run's temporary folder and placeholders would stay. So the first
run starts one guard: it holds the read end of a pipe, hears `+ PID TMP` and `- PID`, and at the
pipe's end (the app is gone, however) kills and removes what was announced and not taken back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil

import minicpm5_mac
from minicpm5_mac import locations

_lock = threading.Lock()
_guard: subprocess.Popen[bytes] | None = None
_owner = 0
_watched: dict[int, Path] = {}


@contextlib.contextmanager
def watching(pid: int, tmp: Path) -> Iterator[None]:
    """While inside, the death of this app kills the tree below `pid` and removes `tmp`."""
    with _lock:
        _watched[pid] = tmp
        _say(f"+ {pid} {tmp}\n")
    try:
        yield
    finally:
        with _lock:
            del _watched[pid]
            _say(f"- {pid}\n")


def _say(line: str) -> None:
    """One line to the guard; where there is none, or it was killed, a new one is told all."""
    global _guard, _owner
    if _guard is None or _owner != os.getpid() or _guard.poll() is not None:
        _guard, _owner = _start(), os.getpid()
        line = "".join(f"+ {pid} {tmp}\n" for pid, tmp in _watched.items())
    assert _guard.stdin is not None
    # Killed this very moment: the next line finds out, and starts another.
    with contextlib.suppress(BrokenPipeError):
        _guard.stdin.write(line.encode())


def _start() -> subprocess.Popen[bytes]:
    # -I keeps the working directory and PYTHONPATH out; what it needs is named instead.
    needed = [
        os.fspath(Path(file).parent.parent) for file in (minicpm5_mac.__file__, psutil.__file__)
    ]
    code = (
        "import sys; sys.path += sys.argv[1:]; from minicpm5_mac.sandbox.guard import main; main()"
    )
    moved = os.environ.get(locations.HOME_VARIABLE)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code, *needed],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        env={
            **{name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ},
            **({locations.HOME_VARIABLE: moved} if moved else {}),
        },
        start_new_session=True,
    )


def main() -> None:
    """The guard's own life. Standard input is the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, Path] = {}
    # Line by line as they come: a buffered iterator would hold lines back, which is fine, since
    # all there is to do happens at the end.
    for line in sys.stdin:
        sign, pid, *rest = line.rstrip("\n").split(" ", 2)
        if sign == "+":
            watched[int(pid)] = Path(rest[0])
        else:
            watched.pop(int(pid), None)
    if watched:
        _end(watched)


def _end(watched: dict[int, Path]) -> None:
    from minicpm5_mac.sandbox import placeholders
    from minicpm5_mac.sandbox.process_tree import ProcessTree
    from minicpm5_mac.sandbox.run_folder import remove_run_folder

    for pid, tmp in watched.items():
        ProcessTree(pid).kill()
        if sys.platform == "darwin":
            from minicpm5_mac.sandbox import macos_survivors

            macos_survivors.kill(tmp)
    for tmp in watched.values():
        remove_run_folder(tmp)
    if sys.platform == "linux":
        placeholders.sweep()
