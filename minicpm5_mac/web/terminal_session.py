"""The app and the page that shows it: the page comes and goes, the app stays.

One page at a time. A second one is refused while the first is attached: two sizes of one screen
fit nobody, and whoever opened the first did not ask for a spectator.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from minicpm5_mac.web.app_process import AppProcess
from minicpm5_mac.web.terminal_modes import TerminalModes
from minicpm5_mac.web.whole_drawing import WholeDrawing

log = logging.getLogger(__name__)

SEND_SECONDS = 10.0
"""A page that takes nothing for this long is gone; it attaches again when it wakes."""

REDRAW_SECONDS = 10.0
"""For a whole drawing in a new size. Before it is there no other size must come: there and back is
no change, to an app that looks at the size when it has time."""

COLUMNS = (20, 500)
ROWS = (5, 300)
"""Bounds of a terminal's size: a page may be folded to nothing for a moment."""

TAIL_BYTES = 4000
"""Of the app's last output, for the message when it ends by a fault."""

_ESCAPES = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    rb"|\x1b\[[0-9;<>=?]*[ -/]*[@-~]"  # CSI
    rb"|\x1b[ -~]|[\x00-\x09\x0b-\x1f\x7f]"
)


class Page(Protocol):
    """What the session needs of a connection."""

    async def send_bytes(self, data: bytes) -> None: ...


@dataclass(frozen=True)
class Ended:
    """How the app ended. status: as of `subprocess.Popen.returncode`; words: its last lines."""

    status: int
    words: str

    @property
    def well(self) -> bool:
        """Whether the user left, rather than something failing."""
        return self.status == 0


class TerminalSession:
    """One app, started when the first page attaches, since only a page knows the size.

    Must be made and used in one event loop.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._loop = asyncio.get_running_loop()
        self._app: AppProcess | None = None
        self._page: Page | None = None
        self._attached = False
        self._modes = TerminalModes()
        self._tail = b""
        self._size = self._app_size = (80, 24)
        self._drawing: WholeDrawing | None = None
        self._redrawing: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[Ended] = self._loop.create_future()

    @property
    def occupied(self) -> bool:
        """Whether a page is attached."""
        return self._page is not None

    @property
    def pid(self) -> int | None:
        """The app's process."""
        return None if self._app is None else self._app.pid

    def occupy(self, page: Page) -> bool:
        """Take the one place; False where it is taken. Output comes after `attach`."""
        if self.occupied:
            return False
        self._page = page
        return True

    async def attach(self, page: Page, columns: int, rows: int, *, light: bool) -> None:
        """Show the app on the page that has the place, all of it anew.

        light: whether the page's background is; an app that is running has chosen already.
        """
        if self.ended.done():
            return
        self._size = _bounded(columns, rows)
        if self._app is None:
            self._attached = True
            self._start(light)
            return
        restored = self._modes.restore()
        self._attached = True
        await page.send_bytes(restored)
        if self._redrawing is not None:
            await asyncio.wait({self._redrawing})
        if self._page is page:
            self._redrawing = asyncio.create_task(self._draw_all())

    async def _draw_all(self) -> None:
        """An app draws everything when the size changes, and only then."""
        columns, rows = self._size
        if self._app_size == self._size:
            await self._draw(columns, rows - 1)
        while self._app_size != self._size:
            await self._draw(*self._size)

    async def _draw(self, columns: int, rows: int) -> None:
        """Give the app a size, and wait until it has drawn all of itself in it."""
        self._drawing = WholeDrawing(rows)
        self._give_size(columns, rows)
        try:
            await asyncio.wait_for(self._drawing.done.wait(), REDRAW_SECONDS)
        except TimeoutError:
            log.warning("the app did not draw all of itself")
        finally:
            self._drawing = None

    def _give_size(self, columns: int, rows: int) -> None:
        assert self._app is not None
        self._app_size = (columns, rows)
        self._app.resize(columns, rows)

    def leave(self, page: Page) -> None:
        """Free the place. The app goes on; what it draws meanwhile is seen by nobody."""
        if self._page is page:
            self._page = None
            self._attached = False

    def typed(self, data: bytes) -> None:
        """What the user typed or pasted."""
        if self._app is not None:
            self._app.write(data)

    def resize(self, columns: int, rows: int) -> None:
        """The page has a new size, in characters."""
        self._size = _bounded(columns, rows)
        if self._app is not None and self._drawing is None:
            self._give_size(*self._size)

    async def close(self) -> None:
        """End the app and everything below it. Idempotent."""
        if self._redrawing is not None:
            self._redrawing.cancel()
        if self._app is not None:
            await asyncio.to_thread(self._app.end)
        elif not self.ended.done():
            self.ended.set_result(Ended(0, ""))

    def _start(self, light: bool) -> None:
        columns, rows = self._app_size = self._size
        # How a terminal says what background it has, in rxvt's words: foreground;background.
        environment = {**self._environment, "COLORFGBG": "0;15" if light else "15;0"}
        try:
            self._app = AppProcess(
                self._command, environment, columns, rows, self._on_output, self._on_end
            )
        except OSError as error:
            self.ended.set_result(Ended(1, f"The chat cannot be started: {error}"))

    # These two are called from the app's threads.

    def _on_output(self, data: bytes) -> None:
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._deliver(data), self._loop).result()

    def _on_end(self, status: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._note_end, status)

    async def _deliver(self, data: bytes) -> None:
        self._modes.read(data)
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        if self._drawing is not None:
            self._drawing.read(data)
        page = self._page
        if page is None or not self._attached:
            return
        try:
            await asyncio.wait_for(page.send_bytes(data), SEND_SECONDS)
        except (TimeoutError, ConnectionError) as error:
            log.warning("the page is gone: %r", error)
            self.leave(page)

    def _note_end(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(Ended(status, _last_words(self._tail)))


def _bounded(columns: int, rows: int) -> tuple[int, int]:
    return (
        min(max(columns, COLUMNS[0]), COLUMNS[1]),
        min(max(rows, ROWS[0]), ROWS[1]),
    )


def _last_words(tail: bytes) -> str:
    """What the app printed after its screen was put away, without control sequences."""
    after_screen = tail.rpartition(b"\x1b[?1049l")[2]
    text = _ESCAPES.sub(b"", after_screen).decode(errors="replace").replace("\r", "")
    return "\n".join(line.rstrip() for line in text.strip().splitlines()[-12:])
