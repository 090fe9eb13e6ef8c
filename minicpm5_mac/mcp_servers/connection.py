"""One server of a session: opened, asked for its tools, called, and closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from minicpm5_mac import __version__
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.answer import McpAnswer, text_of
from minicpm5_mac.mcp_servers.definition import Listed
from minicpm5_mac.mcp_servers.listing import listed_tools
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.way import Way
from minicpm5_mac.visible_text import visible

START_SECONDS = 20.0
MOST_SESSIONS = 5
"""A server that was started anew has forgotten ours: so often it gets another one."""
WORDS_CHARACTERS = 600
CHANGED = (
    "MCP server {0} says that its tools changed. They stay as they were at the start here, and "
    "are asked for anew the next time."
)
_CLOSED = "Connection closed"  # what the SDK says of it; the code is that of other faults as well
_AGAIN = "it had lost this session, and begins another. Call again."
_SESSION_LOST = "Session terminated"  # and of an HTTP status 404: begin another one (transports)
_TRY_ANOTHER_VERSION = (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND)


class Connection:
    """The connection to one server; `run` once, as a task. All of it in one event loop.

    ready: the tools, or words for the user on why there are none.
    """

    def __init__(
        self, server: McpServer, way: Callable[[], Way], tell: Callable[[str], None]
    ) -> None:
        """way: makes the way to it, inside of the loop. tell: takes news for the user."""
        self.ready: Future[tuple[Listed, ...] | str] = Future()
        self._server = server
        self._make_way = way
        self._tell = tell
        self._way: Way | None = None
        self._session: ClientSession | None = None
        self._why = "it has not started yet"
        self._told_of_change = False
        self._listed: tuple[Listed, ...] | None = None
        self._changed: frozenset[str] = frozenset()
        self._lost = asyncio.Event()
        self._reopening = False

    async def run(self, closing: asyncio.Event) -> None:
        """From its start to its end, or until `closing`. Never raises."""
        try:
            for _ in range(MOST_SESSIONS):
                await self._open(closing)
                if not self._lost.is_set():
                    break
                self._lost.clear()
        except Exception as error:
            self._why = _words(error)
        self._session = None
        self._reopening = False
        if not self.ready.done():
            self.ready.set_result(f"MCP server {self._server.name} is not there: {self._why}.")
        elif not closing.is_set():
            self._tell(
                f"MCP server {self._server.name} is gone for this session: {self._why}. "
                "Its tools answer no more."
            )

    async def _open(self, closing: asyncio.Event) -> None:
        self._way = way = self._make_way()
        async with way.streams() as (reading, writing):
            session = ClientSession(
                reading,
                writing,
                message_handler=self._hear,
                client_info=types.Implementation(name="minicpm5-mac", version=__version__),
            )
            async with session:
                try:
                    with anyio.fail_after(START_SECONDS):
                        await _greet(session)
                        listed = await listed_tools(session)
                except TimeoutError:
                    said = await way.last_words()
                    self._why = _joined(f"no answer within {START_SECONDS:g} s", said)
                    return
                except Exception as error:
                    self._why = await self._reason(error)
                    return
                self._keep(listed)
                self._session = session
                self._reopening = False
                await _first(closing, way.gone, self._lost)
                self._session = None
                self._why = await way.last_words() if way.gone.is_set() else "it was closed"

    def _keep(self, listed: tuple[Listed, ...]) -> None:
        """Keep its tools as they are first listed; in a later session those that are still so."""
        if self._listed is None:
            self._listed = listed
            self.ready.set_result(listed)
            return
        now = {tool.name: tool.whole for tool in listed}
        changed = (tool.name for tool in self._listed if now.get(tool.name) != tool.whole)
        self._changed = frozenset(changed)
        if self._changed:
            self._tell(CHANGED.format(self._server.name))

    async def call(self, name: str, arguments: dict[str, Any]) -> McpAnswer:
        """Call one of its tools; cancelling this tells the server so. Never raises but for that."""
        session = self._session
        if name in self._changed:
            return self._failed("this tool is another one now than it was. Do without it.")
        if session is None and self._reopening:
            return self._failed(_AGAIN)
        if session is None:
            return self._failed(f"it is gone: {self._why}. Do without it.")
        # Half a surrogate pair is nothing that JSON in UTF-8 can hold.
        text = json.dumps(arguments, ensure_ascii=False).encode(errors="replace")
        params = types.CallToolRequestParams(name=name, arguments=json.loads(text))
        request = types.CallToolRequest(params=params)
        try:
            with anyio.fail_after(self._server.timeout):
                # Not `call_tool`, which checks the answer by patterns that the server wrote.
                result = await session.send_request(request, types.CallToolResult)
        except TimeoutError:
            seconds = self._server.timeout
            return McpAnswer("limit", f"[time limit: no answer within {seconds} s. Ask for less.]")
        except Exception as error:
            if isinstance(error, MCPError) and error.message == _SESSION_LOST:
                self._reopening = True
                self._lost.set()
                return self._failed(_AGAIN)
            return self._failed(await self._reason(error))
        text = text_of(result.content, result.structured_content)
        if result.is_error:
            return McpAnswer("error", f"Error: {text or 'the server says no more'}")
        return McpAnswer("ok", text or "[done]")

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification) and not self._told_of_change:
            self._told_of_change = True
            self._tell(CHANGED.format(self._server.name))

    async def _reason(self, error: Exception) -> str:
        """What went wrong; where the server is gone, why."""
        if isinstance(error, MCPError) and error.message == _CLOSED:
            said = await self._way.last_words() if self._way is not None else ""
            return said or "the connection was closed"
        return _words(error)

    def _failed(self, why: str) -> McpAnswer:
        return McpAnswer("error", f"Error: MCP server {self._server.name}: {why}")


async def _greet(session: ClientSession) -> None:
    """The handshake that nearly all servers know; for those that do not, the one after it."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in _TRY_ANOTHER_VERSION:
            raise
        await session.discover()


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _words(error: BaseException) -> str:
    """What an error says, in one line: the first of a group, nothing of a traceback."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case Failure():
            text = f"{error.text}. {error.advice}" if error.advice else error.text
        case MCPError():
            text = error.message
        case ValidationError():
            text = "what it answers is not of the form that the protocol has"
        case _:
            text = str(error) or type(error).__name__
    text = " ".join(visible(text[: 4 * WORDS_CHARACTERS]).split()).rstrip(".")
    return text if len(text) <= WORDS_CHARACTERS else f"{text[:WORDS_CHARACTERS]}…"


def _joined(*words: str) -> str:
    return "; ".join(filter(None, words))
