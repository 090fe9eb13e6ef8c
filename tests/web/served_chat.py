"""A chat served by the real command, its processes, and a page that is only a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import http.cookies
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil

PATIENCE = 60.0
"""Seconds for what takes a moment on an idle machine; a busy one is no failure."""


def wait_until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(0.05)


def spend(link: str) -> str:
    """Open the link as a browser does; the cookie it gave."""
    with urllib.request.urlopen(link) as answer:
        jar = http.cookies.SimpleCookie(answer.headers["Set-Cookie"])
    return "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items())


@dataclass
class ServedChat:
    """`minicpm5-mac web` as a process of its own."""

    popen: subprocess.Popen[str]
    link: str
    seen: dict[int, psutil.Process]

    @classmethod
    def start(cls, model: Path | None, *flags: str) -> ServedChat:
        """model: None for the one that the configuration names."""
        named = () if model is None else ("--model", str(model))
        popen = subprocess.Popen(
            [
                *(sys.executable, "-m", "minicpm5_mac", "web", "--no-open", *named),
                *("--temperature", "0", *flags),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert popen.stdout is not None
        first = popen.stdout.readline()
        found = re.search(r"http://\S+", first)
        assert found, (first, popen.stderr and popen.stderr.read())
        return cls(popen, found[0], {})

    @property
    def origin(self) -> str:
        return "http://" + urlsplit(self.link).netloc

    @property
    def page(self) -> str:
        return self.link.partition("?")[0]

    def processes(self) -> list[psutil.Process]:
        """The server's children and theirs, remembered for `left`."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.popen.pid).children(recursive=True):
                self.seen.setdefault(process.pid, process)
        return [process for process in self.seen.values() if _alive(process)]

    def app(self) -> psutil.Process:
        return self._one("minicpm5_mac", "chat")

    def model_process(self) -> psutil.Process:
        return self._one("minicpm5_mac.engine.child")

    def _one(self, *words: str) -> psutil.Process:
        found: list[psutil.Process] = []

        def there() -> bool:
            found[:] = [p for p in self.processes() if set(words) <= set(_command(p))]
            return bool(found)

        wait_until(there, f"a process {' '.join(words)}")
        return found[0]

    def spend_link(self) -> str:
        return spend(self.link)

    def none_left(self) -> None:
        """Every process that was ever seen is gone, and the server too."""
        wait_until(lambda: self.popen.poll() is not None, "the server's end")
        wait_until(lambda: not self.processes(), f"the end of {self.seen}")

    def end(self) -> None:
        self.processes()
        if self.popen.poll() is None:
            self.popen.terminate()
        self.popen.communicate(timeout=PATIENCE)
        for process in self.seen.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


class SocketPage:
    """A page without a browser: what it was sent, and a way to type."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.screen = b""
        self.messages: list[dict[str, object]] = []

    async def size(self, columns: int, rows: int) -> None:
        await self.socket.send_str(json.dumps({"size": [columns, rows]}))

    async def type(self, text: str) -> None:
        await self.socket.send_bytes(text.encode())

    async def until(self, shown: Callable[[SocketPage], bool]) -> None:
        """Read until `shown`, or until the connection is closed."""
        async with asyncio.timeout(PATIENCE):
            while not shown(self):
                message = await self.socket.receive()
                if message.type == aiohttp.WSMsgType.BINARY:
                    self.screen += message.data
                elif message.type == aiohttp.WSMsgType.TEXT:
                    self.messages.append(json.loads(message.data))
                else:
                    return


@contextlib.contextmanager
def slowed(process: psutil.Process) -> Iterator[None]:
    """Let the process run a twentieth of the time, so that a reply lasts on any machine."""
    over = threading.Event()

    def pulse() -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            while not over.is_set():
                process.suspend()
                over.wait(0.38)
                process.resume()
                over.wait(0.02)

    thread = threading.Thread(target=pulse)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.asynccontextmanager
async def socket_page(
    page: str, cookie: str, columns: int = 100, rows: int = 30
) -> AsyncIterator[SocketPage]:
    """A page that is attached to the chat at the address `page`."""
    origin = "http://" + urlsplit(page).netloc
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{page}terminal", headers={"Cookie": cookie, "Origin": origin}
        ) as socket,
    ):
        shown = SocketPage(socket)
        await shown.size(columns, rows)
        yield shown
