"""The tables [mcp.NAME] of the configuration file: read, and their mistakes named."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from minicpm5_mac.configuration.keys import MCP_KEYS, MCP_TABLE, OF_COMMAND, OF_URL
from minicpm5_mac.configuration.toml_text import dotted, shown_value
from minicpm5_mac.mcp_servers.server import ALL, McpServer

Complaint = tuple[tuple[str, ...], str]
"""The key that is wrong, by all its names, and what is wrong with it."""

# It begins the names of its tools, which the model writes and reads all the time.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,19}")
_BY_NAME = {key.last_name: key for key in MCP_KEYS}


def read_servers(tables: Mapping[str, Any]) -> tuple[dict[str, McpServer], list[Complaint]]:
    """The servers that are right, and the complaints about what is not."""
    servers: dict[str, McpServer] = {}
    complaints: list[Complaint] = []
    for name, table in tables.items():
        place = (MCP_TABLE, name)
        if not isinstance(table, dict):
            complaints.append((place, f"{dotted(place)} is a table: write [{dotted(place)}]"))
            continue
        values, wrong = _values(place, table)
        wrong += _whole(place, table)
        if not wrong:
            servers[name] = McpServer(name, **values)
        complaints += wrong
    return servers, complaints


def _values(
    place: tuple[str, ...], table: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Complaint]]:
    values: dict[str, Any] = {}
    wrong: list[Complaint] = []
    for name, value in table.items():
        key = _BY_NAME.get(name)
        where = (*place, name)
        if key is None:
            wrong.append((where, _unknown(place, name)))
            continue
        try:
            values[name] = key.kind.read(value)
        except ValueError:
            wrong.append((where, f"{dotted(where)} takes {key.kind.takes}, not {_said(value)}"))
    return values, wrong


def _whole(place: tuple[str, ...], table: Mapping[str, Any]) -> list[Complaint]:
    """What is wrong with a table as such."""
    wrong: list[Complaint] = []
    name = place[-1]
    if not _NAME.fullmatch(name) or name == ALL:
        text = f"{name!r} is no name for a server: letters, digits, _ and -, at most 20"
        wrong.append((place, text))
    if ("command" in table) == ("url" in table):
        both = "both command and url" if "url" in table else "neither command nor url"
        wrong.append((place, f"[{dotted(place)}] has {both}: give one of the two"))
        return wrong
    given, others = ("url", OF_COMMAND) if "url" in table else ("command", OF_URL)
    for other in others:
        if other in table:
            text = f"{dotted((*place, other))} is not for a server with {given}: leave it out"
            wrong.append(((*place, other), text))
    return wrong


def _unknown(place: tuple[str, ...], name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _BY_NAME, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown key {name!r}{hint}; keys in [{dotted(place)}]: {', '.join(_BY_NAME)}"


def _said(value: object) -> str:
    # A list or table of the right kind has something wrong inside of it.
    inside = {list: "that list", dict: "that table"}
    return inside.get(type(value)) or shown_value(value)
