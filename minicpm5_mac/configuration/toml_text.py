"""Writing values and names as TOML does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: object) -> str:
    """A string, path, number, boolean, or a list or table of these, as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{toml_name(name)} = {toml_value(v)}" for name, v in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str | Path):
        value = str(value)
        # A TOML basic string escapes what a JSON one does, and DEL besides.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def toml_name(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else toml_value(name)


def dotted(names: Sequence[str]) -> str:
    """A key with the tables it stands in."""
    return ".".join(toml_name(name) for name in names)


def shown_value(value: object) -> str:
    """A value that somebody wrote, for a message about it."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    shown = toml_value(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
