"""The chat with tools: their mode, their changes to files, ending a command, turning them on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding

from minicpm5_mac.agent.approval import MODES
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.flows import tools
from minicpm5_mac.app.screens.changes import Changes
from minicpm5_mac.app.screens.replying import ReplyingScreen
from minicpm5_mac.app.tool_words import (
    MODE_NOTES,
    next_mode,
    read_grant,
    read_mode,
    workspace_line,
)
from minicpm5_mac.app.transcript import CancelCallRequested
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import Policy


class ToolsScreen(ReplyingScreen):
    """What can be done while, before and after tools run; in plain chat only `/tools` does."""

    BINDINGS: ClassVar = [
        Binding("f6", "mode", "Tools: ask, accept edits, read only"),
        Binding("f7", "changes", "Tools: changed files, take back"),
        Binding("f10", "cancel_call", "Tools: end the running command alone"),
    ]

    def _toolbox(self) -> Toolbox | None:
        """The tools; says how to get some where there are none."""
        if self.live.toolbox is None:
            self.notify("There are no tools here: /tools turns them on.", severity="warning")
        return self.live.toolbox

    def action_mode(self, argument: str = "") -> None:
        """The next mode, or the one that is named."""
        toolbox = self._toolbox()
        if toolbox is None:
            return
        mode = read_mode(argument) if argument else next_mode(toolbox.mode)
        if mode is None:
            self.notify(f"A mode is one of: {', '.join(MODES)}.", severity="warning")
            return
        toolbox.mode = mode
        self.notify(MODE_NOTES[mode], timeout=3)
        self.refresh_status()

    @work(group="tools", exclusive=True)
    async def action_grant(self, argument: str = "") -> None:
        """Let tools reach one more folder, for this session."""
        toolbox = self._toolbox()
        if toolbox is None:
            return
        if self.reply.running:
            self.notify("A reply is being written: esc stops it.", severity="warning")
            return
        try:
            folder, writable = read_grant(argument)
            await asyncio.to_thread(toolbox.grant, folder, writable=writable)
        except Failure as failure:
            self.complain(failure)
            return
        self.notify(f"Tools work in {workspace_line(toolbox)}, for this session.")

    @work(group="changes", exclusive=True)
    async def action_changes(self) -> None:
        toolbox = self._toolbox()
        if toolbox is None or isinstance(self.app.screen, Changes):
            return
        try:
            history = await asyncio.to_thread(lambda: toolbox.undo)
        except (Failure, OSError) as error:
            self.complain(Failure(f"The kept changes cannot be read: {error}"))
            return
        self.app.push_screen(Changes(history, toolbox.policy.workspace, lambda: self.reply.running))

    def action_cancel_call(self) -> None:
        if self.reply.running and self.live.toolbox is not None:
            self.live.session.cancel_call()

    def on_cancel_call_requested(self, event: CancelCallRequested) -> None:
        event.stop()
        self.action_cancel_call()

    @work(group="tools", exclusive=True)
    async def action_tools(self, argument: str = "") -> None:
        """Turn tools on, in this folder or the one that is named; or see and change what holds."""
        try:
            if argument or self.live.toolbox is None:
                folder = Path(argument or ".").expanduser()
                toolbox = await asyncio.to_thread(lambda: Toolbox(Policy(folder)))
                await asyncio.to_thread(self.live.use_tools, toolbox)
                self.refresh_status()
                await asyncio.to_thread(self.live.prepare_tools)
            elif await tools.look(self.app, self.live.toolbox) == tools.TURN_OFF:
                await asyncio.to_thread(self.live.use_tools, None)
        except Failure as failure:
            self.complain(failure)
        self.refresh_status()
