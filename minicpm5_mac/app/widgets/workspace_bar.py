"""The line at the top of a session with tools: where they work, and the danger, if there is one."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.tool_words import danger, workspace_line


class WorkspaceBar(Static):
    """Hidden in plain chat. It is red for as long as the sandbox or the tools are off."""

    DEFAULT_CSS = """
    WorkspaceBar {
        display: none;
        height: auto;
        max-height: 4;
        padding: 0 2;
        background: $surface;
        color: $text-muted;
        &.-tools { display: block; }
        &.-danger { background: $error; color: $background; text-style: bold; }
    }
    """

    def show(self, toolbox: Toolbox | None) -> None:
        """Say what holds now."""
        self.set_class(toolbox is not None, "-tools")
        if toolbox is None:
            return
        warning = danger(toolbox)
        self.set_class(bool(warning), "-danger")
        self.update(Content("\n".join(filter(None, (warning, workspace_line(toolbox))))))
