"""What no argument may be, whatever the schema says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicpm5_mac.messages import ToolCall
from minicpm5_mac.tools.run_command import LONGEST_TEXT

LARGEST_ARGUMENT = 1024 * 1024


def refusal(call: ToolCall, *, program: str | None = None) -> str:
    """Words for the model where a call must not run; empty where it may.

    program: the name of the argument that becomes a program's text.
    """
    for name, text in _texts(call.arguments):
        if "\0" in text:
            return f"{name} holds a NUL character. Leave it out."
        size = len(text.encode(errors="replace"))
        most = LONGEST_TEXT if name == program else LARGEST_ARGUMENT
        if size > most:
            return f"{name} is {size:,} bytes long; at most {most:,}. Do it in parts."
    return ""


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every string in the arguments, with the name of the argument it belongs to."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield name or str(key), str(key)
            yield from _texts(part, name or str(key))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, name)
