"""The MCP servers of one session, on a thread of their own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.answer import McpAnswer
from minicpm5_mac.mcp_servers.call import McpCall
from minicpm5_mac.mcp_servers.definition import McpTool, offer
from minicpm5_mac.mcp_servers.server import SDK_ADVICE, SDK_MISSING, McpServer
from minicpm5_mac.sandbox.canary import verdict
from minicpm5_mac.sandbox.wrapping import Wrapper

if TYPE_CHECKING:
    from minicpm5_mac.mcp_servers.connection import Connection
    from minicpm5_mac.mcp_servers.way import Way
    from minicpm5_mac.sandbox.policy import Policy

CLOSE_SECONDS = 8.0


class McpServers:
    """Starts servers, keeps the tools they listed then, calls them, and ends them.

    Any thread may call it. One event loop, in one thread, has all the connections: the SDK is
    made of tasks, and a turn is made of threads.
    """

    def __init__(
        self, servers: Sequence[McpServer], workspace: Path, wrapper: Wrapper | None = None
    ) -> None:
        """wrapper: of the sandbox; None is the production back end, which is tried first."""
        self.servers = tuple(servers)
        self.tools: tuple[McpTool, ...] = ()
        self._workspace = workspace
        self._wrapper = wrapper
        self._news: deque[str] = deque()
        self._connections: dict[str, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self, taken: Collection[str]) -> tuple[McpTool, ...]:
        """Start all of them, side by side, and return their tools; `news` says what went wrong.

        taken: names that tools have already. Blocks for as long as a server may take to answer.
        """
        try:
            from minicpm5_mac.mcp_servers import connection
            from minicpm5_mac.mcp_servers.local import LocalWay
            from minicpm5_mac.mcp_servers.remote import RemoteWay
        except ImportError as error:
            self._news.append(f"{SDK_MISSING} ({error}). {SDK_ADVICE}")
            return ()
        _quiet()
        for server in self.servers:
            if server.local:
                policy = self._policy(server)
                if policy is None:
                    continue
                way: Callable[[], Way] = partial(LocalWay, server, policy, self._wrapper)
            else:
                way = partial(RemoteWay, server)
            self._connections[server.name] = connection.Connection(server, way, self._news.append)
        with self._lock:
            if self._closed or not self._connections:
                return ()
            running = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(running,), name="mcp servers", daemon=True
            )
            self._thread.start()
        running.wait()
        names = set(taken)
        tools: list[McpTool] = []
        for server in self.servers:
            if server.name not in self._connections:
                continue
            listed = self._connections[server.name].ready.result()
            if isinstance(listed, str):
                self._news.append(listed)
                continue
            offered = offer(server, listed, names)
            self._news.extend(offered.notes)
            names |= {tool.name for tool in offered.tools}
            tools += offered.tools
        self.tools = tuple(tools)
        return self.tools

    def call(self, tool: McpTool, arguments: dict[str, Any]) -> McpCall:
        """Begin a call; what goes wrong is in its answer."""
        connection = self._connections[tool.server.name]
        with self._lock:
            loop = self._loop
            if self._closed or loop is None or loop.is_closed():
                ended: Future[McpAnswer] = Future()
                ended.set_result(McpAnswer("error", "Error: the MCP servers were ended."))
                return McpCall(ended)
            calling = connection.call(tool.original, arguments)
            return McpCall(asyncio.run_coroutine_threadsafe(calling, loop))

    def news(self) -> tuple[str, ...]:
        """What the user should know and was not told yet; each is returned once."""
        found = []
        while self._news:
            found.append(self._news.popleft())
        return tuple(found)

    def close(self) -> None:
        """End all servers and what they started; idempotent."""
        with self._lock:
            self._closed = True
            loop, closing, thread = self._loop, self._closing, self._thread
            if loop is not None and closing is not None and not loop.is_closed():
                loop.call_soon_threadsafe(closing.set)
        if thread is not None:
            thread.join(CLOSE_SECONDS)

    def _policy(self, server: McpServer) -> Policy | None:
        """What a local server runs under, where that is known to hold; else the user is told."""
        from minicpm5_mac.mcp_servers.local import policy_of

        try:
            policy = policy_of(server, self._workspace)
        except Failure as failure:
            self._refuse(server, f"{failure.text}. {failure.advice}".rstrip(" ."))
            return None
        if self._wrapper is None:
            found = verdict(policy)
            if not found.ok:
                self._refuse(server, found.reason or "the sandbox does not hold")
                return None
        return policy

    def _refuse(self, server: McpServer, why: str) -> None:
        self._news.append(f"MCP server {server.name} is not started: {why}.")

    # In the thread ------------------------------------------------------------------------------

    def _run(self, running: threading.Event) -> None:
        try:
            asyncio.run(self._live(running))
        finally:
            running.set()
            for connection in self._connections.values():
                if not connection.ready.done():
                    connection.ready.set_result("The MCP servers were ended.")

    async def _live(self, running: threading.Event) -> None:
        self._closing = closing = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        running.set()
        connections = list(self._connections.values())
        tasks = [asyncio.create_task(connection.run(closing)) for connection in connections]
        await closing.wait()
        for connection, task in zip(connections, tasks, strict=True):
            if not connection.ready.done():  # nobody waits for what is just starting
                task.cancel()
        await asyncio.wait(tasks, timeout=CLOSE_SECONDS / 2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _quiet() -> None:
    """The SDK logs what servers do wrong, with tracebacks: a terminal app has no place for it."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
