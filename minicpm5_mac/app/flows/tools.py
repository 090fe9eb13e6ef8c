"""Seeing what tools may do, and changing it."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import App

from minicpm5_mac.agent.approval import MODES
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.app.tool_words import (
    MODE_NOTES,
    MODE_WORDS,
    danger,
    offered_tools,
    sandbox_words,
    workspace_line,
)

TURN_OFF = "turn off"


async def look(app: App[Any], toolbox: Toolbox) -> str | None:
    """Show what holds and do what is chosen; TURN_OFF is left to the caller. Raises Failure."""
    lines = [f"Workspace: {workspace_line(toolbox)}", *offered_tools(toolbox)]
    lines.append(danger(toolbox) or sandbox_words(toolbox))
    text = "\n".join(lines)
    rules = toolbox.approvals.rules
    ways = [Way(mode, MODE_WORDS[mode].capitalize(), MODE_NOTES[mode]) for mode in MODES]
    if rules:
        ways.append(Way("rules", "Saved approvals", f"{len(rules)}: see them, forget one"))
    ways.append(Way(TURN_OFF, "Turn tools off", "from the next message on"))
    chosen = await app.push_screen_wait(Choice("Tools", text, ways, toolbox.mode))
    for mode in MODES:
        if chosen == mode:
            toolbox.mode = mode
    if chosen == "rules":
        await _forget(app, toolbox)
    return chosen


async def _forget(app: App[Any], toolbox: Toolbox) -> None:
    rules = toolbox.approvals.rules
    ways = [
        Way(f"rule {at}", rule.words().replace("\n", "\u240a")) for at, rule in enumerate(rules)
    ]
    text = "Of this session, and kept for this folder. Enter forgets one."
    chosen = await app.push_screen_wait(Choice("Saved approvals", text, ways))
    if chosen is not None:
        rule = rules[int(chosen.split()[1])]
        await asyncio.to_thread(toolbox.approvals.forget, rule)
