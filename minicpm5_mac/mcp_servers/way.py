"""The way to a server: what a connection needs to know of the sandbox, or of HTTP."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

Streams = tuple[Any, Any]
"""What the SDK's ClientSession reads from, and what it writes to."""

MESSAGE_BYTES = 16 * 1024 * 1024
"""The longest message, or HTTP response, that is taken from a server."""


class Way(Protocol):
    """How messages reach one server. Used inside of one event loop.

    gone: the server ended, or what it does is not to be borne.
    """

    gone: asyncio.Event

    def streams(self) -> AbstractAsyncContextManager[Streams]:
        """The pair of streams that the SDK talks through; raises Failure where there is no way."""
        ...

    async def last_words(self) -> str:
        """Why the server is gone, for people; empty where nothing is known."""
        ...
