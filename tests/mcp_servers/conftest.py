"""Servers in the real sandbox, ended after each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server_samples import Running
from tried_sandbox import sandbox, sandbox_cache, workspace  # noqa: F401

from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.servers import McpServers

Start = Callable[..., Running]


@pytest.fixture
def start(workspace: Path, sandbox: None) -> Iterator[Start]:  # noqa: F811
    started: list[McpServers] = []

    def run(*servers: McpServer, **settings) -> Running:
        started.append(McpServers(servers, workspace, **settings))
        return Running(started[-1])

    yield run
    for servers in started:
        servers.close()


@pytest.fixture
def in_workspace(workspace: Path) -> Callable[[], list[int]]:  # noqa: F811
    """Processes that work in the test's workspace: its servers, and what they started."""

    def find() -> list[int]:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{name}/cwd") == str(workspace):
                    found.append(int(name))
            except OSError:
                continue
        return found

    return find
