"""A server made with the SDK: over standard streams, or `http PORT` on 127.0.0.1.

Run in the real sandbox, it also tries what it must not be able to do.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("test server")


def tried(step: Callable[[], str]) -> str:
    """What came of a step that may be forbidden."""
    try:
        return step()
    except OSError as error:
        raise ToolError(f"{type(error).__name__}: {error.strerror}") from None


@server.tool()
def echo(text: str, times: int = 1) -> str:
    """Say a text again. What follows is about nothing that a model has to know, at great length."""
    return " ".join([text] * times)


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(f"failed: {why}")


@server.tool()
def structured() -> dict[str, Any]:
    """Return what is no text."""
    return {"sum": 3, "words": ["a", "ä"]}


@server.tool()
def picture() -> Image:
    """Return an image."""
    return Image(data=b"\x89PNG" + bytes(96), format="png")


@server.tool()
def long(lines: int) -> str:
    """Return many lines."""
    return "\n".join(f"line {number}" for number in range(lines))


@server.tool()
def terminal() -> str:
    """Return what a terminal obeys."""
    return "a\x1b]52;c;ZXZpbA==\x07b\x1b[2J\u202ec"


@server.tool()
async def slow(folder: str, context: Context) -> str:
    """Take a minute; leave a mark where it is cancelled."""
    Path(folder, "begun").touch()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        Path(folder, "cancelled").touch()
        raise
    return "slept"


@server.tool()
def crash() -> str:
    """End the whole server."""
    sys.stderr.write("about to crash\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def noise() -> str:
    """Write a lot to stderr."""
    sys.stderr.write("noise " * 1_000_000)
    return "quiet again"


@server.tool()
def look(path: str) -> str:
    """Read a file."""
    return tried(lambda: Path(path).read_text())


@server.tool()
def put(path: str, text: str) -> str:
    """Write a file."""
    return tried(lambda: f"wrote {Path(path).write_text(text)}")


@server.tool()
def connect(port: int) -> str:
    """Open a connection to this machine."""
    return tried(lambda: str(socket.create_connection(("127.0.0.1", port), timeout=2)))


@server.tool()
def variable(name: str) -> str:
    """An environment variable."""
    return os.environ.get(name, "absent")


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")
