"""What the user sees of a call before it runs: everything, with nothing hidden."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from minicpm5_mac.agent.approval import rule_for
from minicpm5_mac.agent.undo.history import unified_diff
from minicpm5_mac.mcp_servers.definition import McpTool
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.tools.tool import Tool
from minicpm5_mac.visible_text import unhidden, visible


@dataclass(frozen=True)
class Shown:
    """title, text, rule: as in ApprovalWanted. stamp: of the file that a diff was made from."""

    title: str
    text: str
    rule: str
    stamp: str | None = None


def call_shown(tool: Tool, call: ToolCall, preview: dict[str, Any] | None = None) -> Shown:
    """preview: of a write, what the tool's `preview` returned."""
    digest = tool.digest if isinstance(tool, McpTool) else None
    rule = rule_for(call, allow=True, definition=digest).words()
    if preview is not None:
        return _write(call, preview, rule)
    program = call.arguments.get("command", call.arguments.get("code"))
    if tool.kind == "command" and isinstance(program, str):
        return Shown(f"{call.name}: {_line(program)}", visible(program), rule)
    if isinstance(tool, McpTool):
        return _mcp(tool, call, rule)
    text = json.dumps(call.arguments, ensure_ascii=False, indent=2)
    return Shown(f"{call.name} {_line(json.dumps(call.arguments, ensure_ascii=False))}",
                 visible(text), rule)  # fmt: skip


def _mcp(tool: McpTool, call: ToolCall, rule: str) -> Shown:
    """Whose tool it is, where the call goes, and everything that is sent there."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    server, name = tool.server, _line(unhidden(tool.original))
    text = unhidden(json.dumps(call.arguments, ensure_ascii=False, indent=2))
    shown = f"MCP server: {server.name}, {server.place}\nTool: {name}\n{text}"
    return Shown(f"{server.name}, {name}: {_line(unhidden(arguments))}", shown, rule)


def _write(call: ToolCall, preview: dict[str, Any], rule: str) -> Shown:
    path = preview["path"]
    before = preview["before"]
    old_name = path if before is not None else "/dev/null"
    text = unified_diff(before or "", preview["after"], old_name, path)
    verb = "change" if before is not None else "create"
    text = text or "(nothing changes)\n"
    return Shown(f"{call.name}: {verb} {_line(path)}", text, rule, preview["stamp"])


def _line(text: str, most: int = 100) -> str:
    """One short line; the whole text is shown below it."""
    first = visible(text).replace("\n", "\u240a").replace("\t", " ")
    return first if len(first) <= most else first[: most - 1] + "…"
