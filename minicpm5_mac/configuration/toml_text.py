"""Writing values and names as TOML does."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: object) -> str:
    """A string, number or boolean as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A TOML basic string escapes what a JSON one does, and DEL besides.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def toml_name(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else toml_value(name)


def dotted(names: Sequence[str]) -> str:
    """A key with the tables it stands in."""
    return ".".join(toml_name(name) for name in names)
