"""One open chat with a model in memory, so that a second double-click does not load a second.

The lock is the kernel's (flock), so it ends with the process that holds it, however that ends.
The file says where the chat is.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import http.client
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from minicpm5_mac import locations

Place = Literal["window", "terminal", "browser"]

FOCUS_SECONDS = 5.0

_WORDS = {
    "window": "in a window of its own",
    "terminal": "in a terminal",
    "browser": "in a browser, by `minicpm5-mac web`",
}


class OpenChat(msgspec.Struct, frozen=True):
    """Where the chat is open. since: local time; port, key: of the window's server, to focus it."""

    place: Place
    pid: int
    since: str
    terminal: str = ""
    port: int = 0
    key: str = ""

    def __str__(self) -> str:
        terminal = f" ({self.terminal})" if self.terminal else ""
        place = f"{_WORDS[self.place]}{terminal}"
        return f"{place}, since {self.since}, process {self.pid}"


class SingleInstance:
    """The lock, held until `release` or the end of the process."""

    def __init__(self, descriptor: int, chat: OpenChat) -> None:
        self._descriptor = descriptor
        self.chat = chat
        self._write()

    def listen_at(self, port: int) -> None:
        """Note where the window can be asked to come to the front."""
        self.chat = msgspec.structs.replace(self.chat, port=port)
        self._write()

    def pass_on(self) -> None:
        """Keep the lock through an `exec`: the program that follows holds it."""
        os.set_inheritable(self._descriptor, True)

    def release(self) -> None:
        """Let go. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self) -> None:
        text = msgspec.json.encode(self.chat)
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))


def lock_file() -> Path:
    """In the cache's folder: it means nothing once its process is gone."""
    return locations.cache_dir() / "open-chat.json"


def open_here(place: Place, terminal: str = "") -> SingleInstance | OpenChat | None:
    """The lock; or where the chat is open, None where that is not told. Raises OSError."""
    path = lock_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(path.read_bytes(), type=OpenChat)
        return None
    now = datetime.datetime.now().strftime("%H:%M")
    chat = OpenChat(place, os.getpid(), now, terminal, key=secrets.token_urlsafe(24))
    return SingleInstance(descriptor, chat)


@contextlib.contextmanager
def by_hand_here() -> Iterator[str]:
    """Of a chat that was started at a shell's prompt: the lock, so that the app finds it.

    Whoever asks there for a second chat gets it, without the lock; yielded is what to say of that.
    """
    terminal = ""
    with contextlib.suppress(OSError):
        terminal = os.ttyname(0)
    try:
        here = open_here("terminal", terminal)
    except OSError:
        yield ""  # it only cannot be found
        return
    if isinstance(here, SingleInstance):
        try:
            yield ""
        finally:
            here.release()
    elif here is not None and here.pid in (os.getpid(), os.getppid()):
        yield ""  # the lock is ours: of `in_terminal`, or of the server that shows us
    else:
        where = "elsewhere" if here is None else str(here)
        yield f"The model is in memory {where}. Here it is a second time."


def bring_to_front(chat: OpenChat) -> bool:
    """Ask the open window to show itself; whether it did."""
    if not chat.port:
        return False
    connection = http.client.HTTPConnection("127.0.0.1", chat.port, timeout=FOCUS_SECONDS)
    try:
        connection.request("POST", "/focus", chat.key)
        return connection.getresponse().status == 204
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
