"""What a tool is to the app: the description that the model reads, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicpm5_mac.events import ToolKind


@dataclass(frozen=True)
class Tool:
    """One tool.

    schema: OpenAI's function description, as the chat template takes it.
    kind: what approval goes by. `read` and `write` tools are given the roots they must keep to
        as `place` (place.py); a `command` tool is a program (`argv` makes its command line).
        An `mcp` tool is called at its server (mcp_servers/definition.py).
    file: the Python file whose functions the sandboxed worker calls; none for an `mcp` tool.
    """

    schema: dict[str, Any] = field(hash=False)
    kind: ToolKind
    file: Path | None = None

    @property
    def name(self) -> str:
        return self.schema["function"]["name"]
