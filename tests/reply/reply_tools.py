"""Tools that the replies of these tests may call."""

from __future__ import annotations

from typing import Any


def _tool(name: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [
    _tool("now", []),
    _tool("note", ["text"], text={"type": "string"}, title={"type": "string"}),
    _tool("add", ["a"], a={"type": "integer"}, b={"type": "integer"}),
    _tool(
        "mixed",
        [],
        flag={"type": "boolean"},
        ratio={"type": "number"},
        words={"type": "array", "items": {"type": "string"}},
        options={"type": "object"},
        maybe={"type": ["string", "null"]},
        either={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        color={"enum": ["red", "green", 3]},
        anything={"description": "no type"},
        small={"type": "integer", "minimum": 1, "maximum": 9},
        nothing={"type": "null"},
    ),
]
