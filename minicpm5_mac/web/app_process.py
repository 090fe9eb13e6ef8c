"""The terminal app as a child of ours, in a pseudo-terminal.

A pseudo-terminal and not Textual's web driver: that protocol has its frames on standard output,
where one stray line of a library ends it. Here a stray line is what it is in every terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence

import psutil

READ_BYTES = 65536
JOIN_SECONDS = 1.0
"""For a write that was under way when the app ended; it fails at once."""
END_SECONDS = 4.0
"""The app ends the model process itself, which may take two seconds; then it is killed."""


class AppProcess:
    """One running app. `on_output` and `on_end` are called from threads of their own.

    on_output: every piece the app writes; while it has not returned, nothing more is read.
    on_end: the exit status as of `subprocess.Popen.returncode`, after the last output.
    Raises OSError where the process cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        columns: int,
        rows: int,
        on_output: Callable[[bytes], None],
        on_end: Callable[[int], None],
    ) -> None:
        # Exported by some shells, and believed before the terminal itself.
        inherited = {k: v for k, v in environment.items() if k not in ("COLUMNS", "LINES")}
        self._terminal, app_side = os.openpty()
        self._lock = threading.Lock()
        try:
            self.resize(columns, rows)
            starter = (sys.executable, "-P", "-m", "minicpm5_mac.web.controlling_terminal")
            self._popen = subprocess.Popen(
                (*starter, *command),
                stdin=app_side,
                stdout=app_side,
                stderr=app_side,
                env={**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._terminal)
            raise
        finally:
            os.close(app_side)
        self._on_output = on_output
        self._on_end = on_end
        self._input: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="app-input", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name="app-output", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def resize(self, columns: int, rows: int) -> None:
        """Tell the terminal its size; the app gets SIGWINCH where it changed."""
        with self._lock, contextlib.suppress(OSError):
            if self._terminal >= 0:
                size = struct.pack("HHHH", rows, columns, 0, 0)
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def write(self, typed: bytes) -> None:
        """Queue what the user typed."""
        self._input.put(typed)

    def end(self) -> None:
        """End the app and all below it: asked first, killed after END_SECONDS. Idempotent."""
        if self._popen.poll() is not None:  # its number may be another process's by now
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.pid).children(recursive=True)
            self._popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(END_SECONDS)
            if self._popen.poll() is None:
                self._popen.kill()
            _, alive = psutil.wait_procs(family, timeout=END_SECONDS)
            for process in alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self._popen.wait()

    def _read(self) -> None:
        # The end of a terminal is EIO on Linux and an empty read on macOS.
        with contextlib.suppress(OSError):
            while data := os.read(self._terminal, READ_BYTES):
                self._on_output(data)
        status = self._popen.wait()
        self._input.put(None)
        self._writer.join(JOIN_SECONDS)
        with self._lock:
            os.close(self._terminal)
            self._terminal = -1
        self._on_end(status)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (typed := self._input.get()) is not None:
                while typed:
                    typed = typed[os.write(self._terminal, typed) :]
