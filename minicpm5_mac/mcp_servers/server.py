"""One MCP server as the user's own configuration file names it."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from minicpm5_mac.failure import Failure
from minicpm5_mac.visible_text import unhidden

ALL = "all"
"""Of `--mcp`: every server of the configuration file."""

CALL_SECONDS = 60
SDK_MISSING = "MCP servers need the package `mcp`, 2.3 or newer, which is not installed"
SDK_ADVICE = "Install it: pip install 'minicpm5-mac[mcp]'"


@dataclass(frozen=True)
class McpServer:
    """A program (`command`) or an address (`url`); see configuration/keys.py for each key.

    env, headers: pairs of name and value, which may be secret.
    tools: the names of those to offer, in that order; empty for all.
    timeout: seconds that one call may take.
    """

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    workspace: Literal["read", "write"] = "read"
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    token_from: str = ""
    unattended: bool = False
    tools: tuple[str, ...] = ()
    timeout: int = CALL_SECONDS

    @property
    def local(self) -> bool:
        """It runs here, in the sandbox; otherwise its calls leave this machine or its sandbox."""
        return bool(self.command)

    @property
    def place(self) -> str:
        """Where a call goes, for people; nothing of it is hidden, and nothing of it is secret."""
        if self.local:
            return unhidden(f"program {' '.join(self.command)}").replace("\n", "\u240a")
        return unhidden(f"outside of the sandbox, {self.url}")

    def identity(self) -> tuple[object, ...]:
        """What it is and may do: another one asks for approval again. Values of env are not in it.

        It goes into a digest that is kept, from which a short secret could be guessed.
        """
        return (
            self.name,
            self.command,
            tuple(name for name, _ in self.env),
            tuple(map(str, self.read)),
            tuple(map(str, self.write)),
            self.workspace,
            self.url,
        )


def chosen_servers(
    configured: Mapping[str, McpServer], names: Sequence[str]
) -> tuple[McpServer, ...]:
    """The servers that were asked for by name, `all` meaning every one.

    Raises Failure for a name that is not configured, and where the SDK is not installed.
    """
    if not names:
        return ()
    for name in names:
        if name != ALL and name not in configured:
            raise Failure(
                f"There is no MCP server {name!r} in your configuration.", _known(configured), 2
            )
    if not configured:
        raise Failure("There is no MCP server in your configuration.", _known(configured), 2)
    if importlib.util.find_spec("mcp") is None:
        raise Failure(f"{SDK_MISSING}.", SDK_ADVICE, 2)
    wanted = tuple(configured) if ALL in names else tuple(dict.fromkeys(names))
    return tuple(configured[name] for name in wanted)


def _known(configured: Collection[str]) -> str:
    if configured:
        return f"There are: {', '.join(sorted(configured))}, and `all` of them."
    return "`minicpm5-mac config path` says where to name one: a table [mcp.NAME]."
