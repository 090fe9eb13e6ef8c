"""The tools that every agent session has."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from minicpm5_mac.events import ToolKind
from minicpm5_mac.tools import (
    edit_file,
    list_dir,
    python,
    read_file,
    run_command,
    search,
    write_file,
)
from minicpm5_mac.tools.tool import Tool

_KINDS: tuple[tuple[ModuleType, ToolKind], ...] = (
    (read_file, "read"),
    (list_dir, "read"),
    (search, "read"),
    (write_file, "write"),
    (edit_file, "write"),
    (run_command, "command"),
    (python, "command"),
)


def built_in_tools() -> tuple[Tool, ...]:
    """In the order in which the model reads them."""
    return tuple(Tool(module.SCHEMA, kind, Path(str(module.__file__))) for module, kind in _KINDS)
