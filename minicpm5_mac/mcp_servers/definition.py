"""What is kept of the tools that a server lists: few words, plain schemas, and a digest.

Everything here was written by the server, and reaches the model reduced (reduced_schema.py). The
digest is of the definition as it was listed: an approval that lasts holds for that one alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from minicpm5_mac.mcp_servers.reduced_schema import Unusable, reduced, shortened
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.tools.tool import Tool
from minicpm5_mac.visible_text import unhidden

SCHEMA_CHARACTERS = 3000
"""Of JSON, for all tools of a server: a third more than the app's own tools take together."""
DESCRIPTION_CHARACTERS = 160
PARAMETER_CHARACTERS = 80

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Listed:
    """A tool as its server lists it. whole: all of it that says what the tool does."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)
    whole: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class McpTool(Tool):
    """A tool of an MCP server. original: its name there. digest: of its definition there."""

    server: McpServer = field(kw_only=True)
    original: str = field(kw_only=True)
    digest: str = field(kw_only=True)


@dataclass(frozen=True)
class Offer:
    """The tools of a server that the model gets, and what the user should know of the others."""

    tools: tuple[McpTool, ...]
    notes: tuple[str, ...] = ()


def offer(server: McpServer, listed: Sequence[Listed], taken: Collection[str]) -> Offer:
    """The tools to offer. taken: names that are in use."""
    by_name = {tool.name: tool for tool in reversed(listed)}
    wanted = server.tools or tuple(dict.fromkeys(tool.name for tool in listed))
    missing = [name for name in wanted if name not in by_name]
    names = set(taken)
    tools: list[McpTool] = []
    unusable: list[str] = []
    too_large: list[str] = []
    room = SCHEMA_CHARACTERS
    for original in wanted:
        if original not in by_name:
            continue
        name = _name(server.name, original, names)
        try:
            schema, size = _fitting(name, by_name[original], room)
        except Unusable as why:
            unusable.append(f"{original} ({why})")
            continue
        if schema is None:
            too_large.append(original)
            continue
        names.add(name)
        room -= size
        digest = _digest(server, by_name[original])
        tools.append(McpTool(schema, "mcp", server=server, original=original, digest=digest))
    notes = _notes(server, not listed, missing, unusable, too_large)
    return Offer(tuple(tools), tuple(notes))


def _notes(
    server: McpServer,
    nothing: bool,
    missing: list[str],
    unusable: list[str],
    too_large: list[str],
) -> list[str]:
    who = f"MCP server {server.name}"
    notes = []
    if nothing:
        notes.append(f"{who} has no tools.")
    elif missing:
        notes.append(f"{who} has no tool {_joined(missing)}.")
    if unusable:
        notes.append(f"{who}: these tools cannot be called: {_joined(unusable)}.")
    if too_large:
        notes.append(
            f"{who}: these tools are left out, for the descriptions of a server may take "
            f"{SCHEMA_CHARACTERS:,} characters: {_joined(too_large)}. Name those that you need: "
            f"tools = [...] in [mcp.{server.name}]."
        )
    return notes


def _joined(names: list[str], most: int = 20) -> str:
    shown = [" ".join(unhidden(name[:80]).split()) for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(shown)}{more}"


def _name(server: str, original: str, taken: Collection[str]) -> str:
    """A name that a call can have and nothing else has."""
    tool = _NO_NAME.sub("_", original)
    own = tool.lower().startswith((f"{server.lower()}_", f"{server.lower()}-"))
    base = (tool if own else f"{server}_{tool}")[:_LONGEST_NAME]
    name, number = base, 2
    while name in taken:
        suffix = f"_{number}"
        name, number = base[: _LONGEST_NAME - len(suffix)] + suffix, number + 1
    return name


def _fitting(name: str, tool: Listed, room: int) -> tuple[dict[str, Any] | None, int]:
    """Its schema and the schema's size; None where there is not enough room, even for less."""
    for words in (PARAMETER_CHARACTERS, 0):
        parameters = reduced(tool.parameters, words)
        function = {
            "name": name,
            "description": shortened(tool.description, DESCRIPTION_CHARACTERS),
            "parameters": parameters,
        }
        schema = {"type": "function", "function": function}
        size = len(json.dumps(schema, ensure_ascii=False))
        if size <= room:
            return schema, size
    return None, 0


def _digest(server: McpServer, tool: Listed) -> str:
    whole = [server.identity(), tool.whole]
    data = json.dumps(whole, sort_keys=True, default=str).encode(errors="replace")
    return hashlib.sha256(data).hexdigest()
