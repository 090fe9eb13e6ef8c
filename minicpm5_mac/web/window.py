"""The chat in a window of its own: pywebview shows the page that a thread of ours serves.

The only place that imports `webview`. The window has the main thread, as macOS wants it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from minicpm5_mac.web.server import ChatServer

log = logging.getLogger(__name__)

SIZE = (1040, 720)
LEAST_SIZE = (480, 320)
BACKGROUND = "#15171c"  # as page.css: no white flash before the page is there
STOP_SECONDS = 15.0
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


class NoWindow(Exception):
    """There is nothing here that can show a window; why, for the log."""


class _ServerThread:
    """A server in an event loop of its own, beside the window's."""

    def __init__(self, server: ChatServer, on_end: Callable[[], None]) -> None:
        self._server = server
        self._on_end = on_end
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)

    def start(self) -> None:
        """Returns when the server listens. Raises OSError where it cannot."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End the app and the server."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        try:
            await self._server.start()
        except OSError as error:
            self._error = error
            return
        finally:
            self._ready.set()
        ended = self._server.session.ended
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        well = ended.done() and ended.result().well
        stopped.cancel()
        await self._server.close()
        if well:
            self._on_end()  # after a fault the window stays: the page says what happened


def run_window(
    command: Sequence[str],
    environment: Mapping[str, str],
    focus_key: str,
    on_listening: Callable[[int], None],
) -> None:
    """Show the window until it is closed or the user leaves the app; nothing runs on after that.

    on_listening is told the server's port. Raises NoWindow where there can be none, OSError where
    the page cannot be served.
    """
    if sys.platform == "linux" and not any(map(os.environ.get, SCREENS)):
        raise NoWindow("there is no screen")  # GTK would end the process
    try:
        import webview
        from webview.errors import WebViewException
    except ImportError as error:
        raise NoWindow(f"pywebview is not installed: {error}") from None

    windows: list[webview.Window] = []

    def to_front() -> None:
        for window in windows:
            window.restore()
            window.show()

    def close() -> None:
        for window in windows:
            window.destroy()

    server = ChatServer(command, environment, to_front, focus_key)
    thread = _ServerThread(server, close)
    thread.start()
    try:
        on_listening(server.port)
        window = webview.create_window(
            "MiniCPM5",
            server.link,
            width=SIZE[0],
            height=SIZE[1],
            min_size=LEAST_SIZE,
            background_color=BACKGROUND,
            text_select=True,
            zoomable=False,  # the page changes its own font size
        )
        if window is not None:
            windows.append(window)
            window.events.closed += windows.clear
        webview.start(private_mode=True)
    except WebViewException as error:
        raise NoWindow(str(error)) from None
    finally:
        thread.stop()
