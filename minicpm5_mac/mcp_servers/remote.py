"""A server at an address of the user's own configuration, over streamable HTTP.

The SDK follows a redirect only within the address's scheme, host and port. What it does not do is
here: responses have a bound and come uncompressed, and a server that cannot be reached fails one
call, not all that follow.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client

from minicpm5_mac.configuration.kinds import is_loopback
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.way import MESSAGE_BYTES, Streams

CONNECT_SECONDS = 10.0


class RemoteWay:
    """The way to one address; `streams` once."""

    def __init__(self, server: McpServer) -> None:
        self.gone = asyncio.Event()
        self._server = server

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        server = self._server
        # Answered or not, a call is over after its time; only then may a read be given up.
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.timeout + CONNECT_SECONDS)
        # As everywhere here, proxies are those of the environment; a proxy for this machine's own
        # addresses would send them elsewhere.
        outside = not is_loopback(urlsplit(server.url).hostname or "")
        async with (
            BoundedClient(headers=_headers(server), timeout=timeout, trust_env=outside) as client,
            streamable_http_client(
                server.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
            ) as streams,
        ):
            yield streams

    async def last_words(self) -> str:
        return ""


class BoundedClient(httpx2.AsyncClient):
    """Never reads more of a response than MESSAGE_BYTES, nor what is compressed.

    What goes wrong on the way becomes an answer that says so: an exception would end the SDK's
    transport, and with it the server for the rest of the session.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            return _failed(request, f"cannot be reached: {_words(error)}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return _failed(request, "answered with what is compressed, which it was not asked for")
        kind = response.headers.get("content-type", "").lower()
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        bounded = _BoundedStream(response.stream)
        if kind.startswith("text/event-stream"):
            response.stream = bounded
            return response
        try:
            content = b"".join([chunk async for chunk in bounded])
        except _TooMuch:
            return _failed(request, f"answered with more than {MESSAGE_BYTES >> 20} MiB")
        except httpx2.TransportError as error:
            return _failed(request, f"stopped in the middle of its answer: {_words(error)}")
        finally:
            await response.aclose()
        whole = httpx2.Response(
            response.status_code, headers=_plain(response.headers), content=content, request=request
        )
        whole.next_request = response.next_request
        return whole


class _TooMuch(httpx2.ReadError):
    """More than is taken from a server."""


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if total > MESSAGE_BYTES:
                raise _TooMuch("too much")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _headers(server: McpServer) -> dict[str, str]:
    """Raises Failure where the token is not where it is said to be."""
    headers = {"accept-encoding": "identity", **dict(server.headers)}
    if server.token_from:
        token = os.environ.get(server.token_from, "")
        if not token or not token.isascii() or not token.isprintable():
            raise Failure(
                f"the variable {server.token_from}, which is to hold its token, is not set to one",
                f"Set it, or take token_from out of [mcp.{server.name}].",
            )
        headers["authorization"] = f"Bearer {token}"
    return headers


def _plain(headers: httpx2.Headers) -> list[tuple[str, str]]:
    """Without those that speak of the way the body came; the whole body is there now."""
    transport = ("content-length", "transfer-encoding", "content-encoding")
    return [(name, value) for name, value in headers.multi_items() if name not in transport]


def _failed(request: httpx2.Request, words: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": words}}
    return httpx2.Response(503, json=error, request=request)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
