"""The real app in a pseudo-terminal, which may send any bytes; and how a fault of it looks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

from minicpm5_mac import locations

PATIENCE = 60.0
LEAVE = b"\x11"
FAULT = """
import sys
from textual.drivers.linux_driver import LinuxDriver

def fail(self, message):
    secret = "a value of a variable"
    raise RuntimeError("made by a test")

LinuxDriver.process_message = fail
from minicpm5_mac.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Terminal:
    """A process in a terminal of its own. shown: all that it wrote."""

    def __init__(self, *arguments: str) -> None:
        self.shown = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, *arguments])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self._terminal, data)

    def shows(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            assert self._read(), self.shown

    def status(self) -> int:
        """Its exit status, when it has ended."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, self.shown
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def _read(self) -> bool:
        """Read what is there, if something is; False at the end."""
        if not select.select([self._terminal], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


def test_bytes_that_are_no_text_end_nothing(tiny_model: Path):
    with contextlib.closing(
        Terminal("-m", "minicpm5_mac", "chat", "--model", str(tiny_model))
    ) as terminal:
        terminal.shows("thinking on")
        terminal.type(b"\xff")
        terminal.shows("\ufffd")
        terminal.type(b"caf\xe9 noir")
        terminal.shows("noir")
        terminal.type("grün".encode()[:3])
        terminal.type("grün".encode()[3:])
        terminal.shows("ün")
        terminal.type(LEAVE)
        assert terminal.status() == 0
    assert "Traceback" not in terminal.shown


def test_a_fault_of_the_app_is_a_message_and_no_success(tiny_model: Path):
    with contextlib.closing(Terminal("-c", FAULT, "chat", "--model", str(tiny_model))) as terminal:
        terminal.shows("\x1b[?1049h")
        terminal.type(b"x")
        assert terminal.status() == 1
    said = terminal.shown.rpartition("\x1b[?1049l")[2]
    assert "The app had to end because of a fault in it" in said
    assert str(locations.log_dir()) in said.replace("\r\n", "")
    assert "Traceback" not in terminal.shown
    assert "textual run" not in terminal.shown
    logged = (locations.log_dir() / "app.log").read_text(encoding="utf-8")
    assert "made by a test" in logged
    assert "a value of a variable" not in logged
