"""The keys as people read them: in `minicpm5-mac config show`, and in the README."""

from __future__ import annotations

from typing import Any

from minicpm5_mac.configuration.configuration import Configuration
from minicpm5_mac.configuration.keys import (
    KEYS,
    MCP_KEYS,
    MCP_TABLE,
    OF_COMMAND,
    OF_URL,
    PROMPTS,
    Key,
)
from minicpm5_mac.configuration.kinds import thinking_word
from minicpm5_mac.configuration.toml_text import toml_name, toml_value


def shown_as_toml(configuration: Configuration) -> str:
    """A complete file that says what holds, with each key's meaning and choices above it.

    Keys that are not set stand there as comments. It is itself a valid configuration file.
    """
    lines: list[str] = []
    table = ""
    for key in KEYS:
        if key.table != table:
            table = key.table
            lines.append(f"[{table}]")
        lines += _explained(key)
        value = _value(configuration, key)
        lines.append(
            f"# {key.last_name} =" if value is None else f"{key.last_name} = {toml_value(value)}"
        )
        lines.append("")
    lines += [f"[{PROMPTS.table}]", *_explained(PROMPTS)]
    lines += [f"{toml_name(name)} = {toml_value(v)}" for name, v in configuration.prompts.items()]
    return "\n".join([*lines, "", *_servers(configuration)]) + "\n"


def _servers(configuration: Configuration) -> list[str]:
    """The tables of MCP servers, below an explanation of their keys."""
    lines = [f"# [{MCP_TABLE}.NAME]"]
    for key in MCP_KEYS:
        meaning, takes = _explained(key)
        lines.append(f"# {key.last_name}: {meaning.removeprefix('# ')} {takes.removeprefix('# ')}")
    for name, server in configuration.mcp.items():
        lines += ["", f"[{MCP_TABLE}.{toml_name(name)}]"]
        for key in MCP_KEYS:
            if key.last_name in (OF_URL if server.local else OF_COMMAND):
                continue
            value = getattr(server, key.last_name)
            if key.last_name in ("env", "headers"):
                value = dict(value)
            if value or key.default == value:
                lines.append(f"{key.last_name} = {toml_value(value)}")
    return lines


def markdown_table() -> str:
    """All keys as a Markdown table."""
    rows = ["| Key | Takes | Default | Meaning |", "|---|---|---|---|"]
    for key in (*KEYS, PROMPTS, *MCP_KEYS):
        default = f"`{toml_value(key.default)}`" if key.default is not None else key.unset
        rows.append(f"| `{key.name}` | {key.kind.takes} | {default} | {key.meaning} |")
    return "\n".join(rows) + "\n"


def _explained(key: Key) -> list[str]:
    takes = f"Takes {key.kind.takes}."
    unset = f" Not set: {key.unset}." if key.unset else ""
    return [f"# {key.meaning}", f"# {takes}{unset}"]


def _value(configuration: Configuration, key: Key) -> Any:
    place: Any = getattr(configuration, key.table) if key.table else configuration
    value = getattr(place, key.last_name)
    return thinking_word(value) if key.name == "thinking" else value
