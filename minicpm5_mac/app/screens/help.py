"""Keys and commands."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.key_help import KeySection
from minicpm5_mac.app.screens.dialog import Dialog

_KEY_CELLS = 33


class Help(Dialog[None]):
    """Everything that can be pressed, from the widgets' own bindings, and the slash commands."""

    TITLE = "Keys and commands"
    DEFAULT_CSS = """
    Help > .dialog-box { height: 94%; }
    Help VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    Help .help-section { height: auto; margin: 0 0 1 0; }
    """

    def __init__(self, sections: Sequence[KeySection]) -> None:
        super().__init__()
        self._sections = tuple(sections)

    def content(self) -> ComposeResult:
        commands = tuple(
            (f"/{command.name} {command.argument}".rstrip(), command.description)
            for command in slash_commands.COMMANDS
        )
        with VerticalScroll():
            for section in (*self._sections, KeySection("Commands", commands)):
                yield Static(self._text(section), classes="help-section")

    @staticmethod
    def _text(section: KeySection) -> Content:
        lines: list[Content] = [Content.styled(section.title, "bold $primary")]
        for keys, description in section.keys:
            if len(keys) >= _KEY_CELLS:
                lines.append(Content.styled(keys, "$foreground"))
                keys = ""
            lines.append(Content.assemble(keys.ljust(_KEY_CELLS), (description, "$text-muted")))
        return Content("\n").join(lines)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
