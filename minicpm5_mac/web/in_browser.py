"""`minicpm5-mac web`: the server until the app ends or the command is interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
import webbrowser
from collections.abc import Mapping, Sequence

from minicpm5_mac.failure import Failure
from minicpm5_mac.web.log_file import log_to_file
from minicpm5_mac.web.server import ChatServer

INTERRUPTED = 130


def run_in_browser(
    command: Sequence[str], environment: Mapping[str, str], *, open_browser: bool
) -> int:
    """Serve the app; returns the exit code. Raises Failure where the app or the server fails."""
    log_to_file()
    return asyncio.run(_serve(command, environment, open_browser))


async def _serve(command: Sequence[str], environment: Mapping[str, str], open_browser: bool) -> int:
    server = ChatServer(command, environment)
    try:
        await server.start()
    except OSError as error:
        raise Failure(
            f"The page cannot be served on 127.0.0.1: {error}",
            "`minicpm5-mac chat` needs no server.",
        ) from None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    print(f"The chat is at {server.link}")
    print("The link works once; a reload of its page is fine. Ctrl+C here ends the chat.")
    sys.stdout.flush()
    stopped = asyncio.create_task(stop.wait())
    try:
        if open_browser:
            await asyncio.to_thread(webbrowser.open, server.link)
        await asyncio.wait({server.session.ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        interrupted = stop.is_set()
        stopped.cancel()
        await server.close()
    ended = server.session.ended.result()
    if interrupted:
        return INTERRUPTED
    if not ended.well:
        raise Failure(
            f"The chat ended by a fault (status {ended.status}).\n{ended.words}".rstrip(),
            "What was said is kept: `minicpm5-mac web --continue` goes on with it.",
        )
    return 0
