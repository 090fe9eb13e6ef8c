"""Servers to test with, and what is asked of them once they run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from minicpm5_mac.mcp_servers.answer import McpAnswer
from minicpm5_mac.mcp_servers.definition import McpTool
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.servers import McpServers

HERE = Path(__file__).parent
SDK = McpServer("test", command=(sys.executable, str(HERE / "sdk_server.py")), read=(HERE,))


def raw(how: str, *arguments: str, **settings) -> McpServer:
    """A server that misbehaves."""
    command = (sys.executable, "-I", "-S", str(HERE / "raw_server.py"), how, *arguments)
    return replace(McpServer("raw", command=command, read=(HERE,)), **settings)


class Running:
    """Servers that were started. news: what the user was told of them at their start."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers
        self.tools = {tool.original: tool for tool in servers.start(())}
        self.news = servers.news()

    def __getitem__(self, name: str) -> McpTool:
        return self.tools[name]

    def call(self, name: str, /, **arguments) -> McpAnswer:
        return self.servers.call(self.tools[name], arguments).wait()


def wait_until(holds: Callable[[], object], seconds: float = 10) -> None:
    """Until something is so, which is to come soon."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)
