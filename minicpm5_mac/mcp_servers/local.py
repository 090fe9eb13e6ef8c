"""A server that runs here: in the sandbox, on the pipes of a command that is talked to.

Not the SDK's own way to start a program, which knows nothing of a sandbox: the pipes are those of
sandbox/process.py, and so are limits, supervision, and the end of the whole tree with the app.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.way import MESSAGE_BYTES, Streams
from minicpm5_mac.sandbox.ended import Ended, Reason
from minicpm5_mac.sandbox.output import plain_text
from minicpm5_mac.sandbox.policy import Limits, Policy
from minicpm5_mac.sandbox.process import RunningCommand, start
from minicpm5_mac.sandbox.wrapping import Wrapper
from minicpm5_mac.visible_text import visible

CLOSE_SECONDS = 0.5  # for a server to end by itself once nothing comes any more
LAST_WORDS_SECONDS = 1.5
SAID_CHARACTERS = 400
MOST_GARBAGE = 100
"""Lines that are no messages; a few are what programs print before they know better."""
MOST_UNASKED = 1000
"""Messages that answer nothing, since it was last asked something."""
NOT_FOUND = (126, 127)

_ENDS = {
    Reason.MEMORY: "it used more memory than is allowed",
    Reason.PROCESSES: "it started more processes than are allowed",
    Reason.OUTPUT: "it wrote without an end",
    Reason.DISK: "the disk is nearly full",
    Reason.CANCELLED: "it was ended",
    Reason.TIMEOUT: "its time was up",
}


def policy_of(server: McpServer, workspace: Path) -> Policy:
    """What a server may reach. Raises Failure for what cannot be granted."""
    return Policy(
        workspace,
        read=server.read,
        write=server.write,
        writable=server.workspace == "write",
        limits=replace(Limits(), lasting=True),
        environment=server.env,
    )


class LocalWay:
    """The way to one program; `streams` once."""

    def __init__(self, server: McpServer, policy: Policy, wrapper: Wrapper | None) -> None:
        self.gone = asyncio.Event()
        self._server = server
        self._policy = policy
        self._wrapper = wrapper
        self._loop = asyncio.get_running_loop()
        self._command: RunningCommand | None = None
        self._started: asyncio.Future[RunningCommand] = self._loop.create_future()
        self._ended: Ended | None = None
        self._fault = ""
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._garbage: list[str] = []
        self._garbage_lines = 0
        self._unasked = 0
        self._inward: MemoryObjectSendStream[SessionMessage | Exception] | None = None

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncGenerator[Streams]:
        """Start it; at the end, end it with its whole tree."""
        # Without a bound of their own: `_take` counts, and ends a server that floods.
        inward, reading = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        writing, outward = anyio.create_memory_object_stream[SessionMessage](0)
        self._inward = inward
        # A daemon: an app that ends must not wait for it, and the guard ends the server then.
        threading.Thread(target=self._live, name=f"mcp {self._server.name}", daemon=True).start()
        self._command = await self._started
        sending = asyncio.create_task(self._send(outward, self._command))
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                self._command.close_input()
                with anyio.move_on_after(CLOSE_SECONDS):
                    await self.gone.wait()
                self._command.cancel()
                with anyio.move_on_after(10):
                    await self.gone.wait()
                sending.cancel()
                for stream in (inward, reading, writing, outward):
                    stream.close()

    async def last_words(self) -> str:
        with anyio.move_on_after(LAST_WORDS_SECONDS):
            await self.gone.wait()
        words = [self._fault or self._how_it_ended()]
        if self._garbage:
            words.append(f"it wrote what is no MCP message: {self._garbage[0]}")
        if self._ended is not None and self._ended.stderr is not None:
            said = self._ended.stderr.text().strip()
            if said:
                words.append(f"it said: {_short(said)}")
        return "; ".join(filter(None, words))

    def _how_it_ended(self) -> str:
        ended = self._ended
        if ended is None:
            return ""
        if ended.reason is not Reason.EXIT:
            return _ENDS[ended.reason]
        text = f"it ended with status {ended.status}"
        if ended.status in NOT_FOUND:
            text += " (the sandbox shows it system folders, the workspace, and what `read` grants)"
        return text

    # In the command's threads -------------------------------------------------------------------

    def _live(self) -> None:
        fault = ""
        try:
            command = start(
                self._policy,
                self._server.command,
                on_output=self._hear,
                separate_stderr=True,
                live=True,
                wrapper=self._wrapper,
            )
            self._tell(self._set_started, command)
            self._ended = command.wait()
        except Failure as failure:
            fault = str(failure)
        except Exception as error:  # the loop is gone, or what nobody thought of
            fault = f"{type(error).__name__}: {error}"
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._tell(self._finish, fault)

    def _hear(self, stream: str, chunk: bytes) -> None:
        if stream == "stdout":
            self._tell(self._take, chunk)

    def _tell(self, function, *arguments: object) -> None:
        self._loop.call_soon_threadsafe(function, *arguments)

    # In the loop --------------------------------------------------------------------------------

    def _set_started(self, command: RunningCommand) -> None:
        if not self._started.done():
            self._started.set_result(command)

    def _finish(self, fault: str) -> None:
        self._fault = self._fault or fault
        if not self._started.done():
            self._started.set_exception(Failure(fault or "it did not start"))
        self.gone.set()
        if self._inward is not None:
            self._inward.close()

    async def _send(
        self, outward: MemoryObjectReceiveStream[SessionMessage], command: RunningCommand
    ) -> None:
        async for item in outward:
            message = item.message
            if isinstance(message, types.JSONRPCRequest):
                self._unasked = 0
            try:
                data = message.model_dump_json(by_alias=True, exclude_unset=True)
                command.send(data.encode() + b"\n")
            except Failure:
                self._end("it does not read what it is sent")
            except ValueError:  # what cannot be written as JSON: an echo of what the server sent
                self._end("it asks for an answer that cannot be written")

    def _take(self, chunk: bytes) -> None:
        """Output, as it comes: a message a line."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._take_line(b"".join((*self._line, line)))
            self._line, self._line_bytes = [], 0
        if rest and not self._fault:
            self._line.append(rest)
            self._line_bytes += len(rest)
            if self._line_bytes > MESSAGE_BYTES:
                self._end(f"it wrote a message of more than {MESSAGE_BYTES >> 20} MiB")

    def _take_line(self, line: bytes) -> None:
        if self._fault or not line.strip() or self._inward is None:
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._garbage_lines += 1
            if not self._garbage:
                self._garbage.append(_short(plain_text(line[:4096])))
            if self._garbage_lines > MOST_GARBAGE:
                self._end("it writes what is no MCP")
            return
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._unasked += 1
            if self._unasked > MOST_UNASKED:
                self._end("it sends messages that nobody asked for, without an end")
                return
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._inward.send_nowait(SessionMessage(message))

    def _end(self, fault: str) -> None:
        self._fault = self._fault or fault
        self._line = []
        if self._command is not None:
            self._command.cancel()


def _short(text: str) -> str:
    """The end of what a program said, on one line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= SAID_CHARACTERS else f"…{line[-SAID_CHARACTERS:]}"
