"""The tools of one session in one folder: what is offered, allowed, run, and taken back."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from minicpm5_mac.agent.approval import Approvals, Mode
from minicpm5_mac.agent.undo.history import UndoHistory
from minicpm5_mac.events import Event, Notice
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.mcp_servers.servers import McpServers
from minicpm5_mac.sandbox.canary import verdict
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.wrapping import Wrapper, unconfined
from minicpm5_mac.tools.built_in import built_in_tools
from minicpm5_mac.tools.own_tools import own_tools
from minicpm5_mac.tools.tool import Tool

MCP_NEWS = "mcp"
"""The code of notices about MCP servers."""

UNCONFINED = "The sandbox is off for this session: tools can read and change anything you can."


@dataclass(frozen=True)
class TurnLimits:
    """What ends a turn with tools, beside its answer.

    steps: replies of the model. seconds: of everything but waiting for the user.
    tokens: written by the model in all replies of the turn; None is no limit.
    """

    steps: int = 30
    seconds: float = 1800.0
    tokens: int | None = 60_000


class Toolbox:
    """Tools for a `Session`. The properties and `mode` are for any thread.

    mode: `ask`, `accept-edits` or `read-only`, changed at any time, also while a turn runs.
    approvals: the rules that hold, for a front end to list and to forget.
    undo: the turns whose file changes can be taken back.
    call_ids: numbers the calls of the session. seen: the stamps of files as the model last saw
    them, by path. outputs: what read_file finds under names that are no files, `output-3`.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        mode: Mode = "ask",
        commands: bool | None = None,
        own: Path | None = None,
        confined: bool = True,
        limits: TurnLimits | None = None,
        servers: Sequence[McpServer] = (),
    ) -> None:
        """policy: the workspace and what else was granted.

        commands: for scripts, see `Approvals`. own: a folder with the user's own tools, which
        is granted for reading. confined: False only where the user turned the sandbox off for
        this session, knowingly; the front end then says so all the time. servers: MCP servers
        of the user's own configuration, started by `prepare` and ended by `close`.
        Raises Failure where saved rules cannot be read.
        """
        if own is not None:
            policy = Policy(
                policy.workspace, (*policy.read, own), policy.write, policy.writable, policy.limits
            )
        self.policy = policy
        self.confined = confined
        self.limits = limits or TurnLimits()
        self.approvals = Approvals(policy.workspace, mode, commands)
        self.call_ids = itertools.count(1)
        self.seen: dict[str, str] = {}
        self.outputs: dict[str, Path] = {}
        self.servers = McpServers(servers, policy.workspace, self.wrapper) if servers else None
        self._own = own
        self._ready = False
        self._reason = ""
        self._tools: dict[str, Tool] = {tool.name: tool for tool in built_in_tools()}
        self._preparing = threading.Lock()

    @property
    def mode(self) -> Mode:
        return self.approvals.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.approvals.mode = mode

    @property
    def wrapper(self) -> Wrapper | None:
        """For the sandbox's functions: None is the production back end."""
        return None if self.confined else unconfined

    @property
    def off(self) -> str:
        """Why there are no tools; empty while nothing speaks against them."""
        return self._reason

    @property
    def tools(self) -> dict[str, Tool]:
        """By name, in the order in which the model reads them; empty where they are off."""
        return {} if self._reason else self._tools

    @property
    def schemas(self) -> tuple[dict[str, Any], ...]:
        """What the model reads."""
        return tuple(tool.schema for tool in self.tools.values())

    @cached_property
    def undo(self) -> UndoHistory:
        return UndoHistory(self.policy.workspace, self.policy.write_roots)

    def prepare(self) -> Iterator[Event]:
        """Try the sandbox, read the user's own tools, start MCP servers: once. It may take seconds.

        A sandbox that does not hold turns the tools off: chat goes on, and a Notice says why. What
        is new of MCP servers is told each time: one that did not start, or is gone, or changed.
        Raises Failure where one of the user's own tools cannot be used.
        """
        with self._preparing:
            if self._ready:
                yield from self._news()
                return
            if self.confined:
                found = verdict(self.policy)
                if not found.ok:
                    self._reason = found.reason or "the sandbox does not hold"
                    self._ready = True
                    yield Notice(
                        "tools_off",
                        f"Tools are off, this is chat only: {self._reason}. "
                        "`minicpm5-mac doctor` shows all probes.",
                    )
                    return
            else:
                yield Notice("sandbox_off", UNCONFINED, once=True)
            if self._own is not None:
                for tool in own_tools(self._own, self.policy, self._tools, self.wrapper):
                    self._tools[tool.name] = tool
            if self.servers is not None:
                for tool in self.servers.start(self._tools):
                    self._tools[tool.name] = tool
            self._ready = True
            yield from self._news()

    def grant(self, folder: Path, *, writable: bool = False) -> None:
        """Let tools read a further folder, or write it too, from the next call on.

        For the user, between two turns; nothing a model says comes here. What was granted holds for
        this session. MCP servers that run keep what they have. Raises Failure for a folder that is
        missing or too much to hand to a tool, and where the sandbox would not hold with it.
        """
        with self._preparing:
            policy = self.policy
            more = dataclasses.replace(
                policy,
                read=policy.read if writable else (*policy.read, folder),
                write=(*policy.write, folder) if writable else policy.write,
            )
            if self.confined and not (found := verdict(more)).ok:
                why = found.reason or "the sandbox does not hold with it"
                raise Failure(f"{folder} is not granted: {why}", "`minicpm5-mac doctor` shows why.")
            self.policy = more
            # The next turn looks at the new folder too.
            self.__dict__.pop("undo", None)

    def close(self) -> None:
        """End what lives as long as the session: MCP servers. Idempotent; it may take seconds."""
        if self.servers is not None:
            self.servers.close()

    def _news(self) -> Iterator[Event]:
        if self.servers is not None:
            for text in self.servers.news():
                yield Notice(MCP_NEWS, text)

    def place(self) -> dict[str, Any]:
        """The roots that file tools must keep to, for tools/place.py."""
        policy = self.policy
        roots = [[str(policy.workspace), policy.writable]]
        roots += [[str(path), True] for path in policy.write]
        roots += [[str(path), False] for path in policy.read]
        return {"roots": roots, "seen": self.seen, "protected": policy.protected}
