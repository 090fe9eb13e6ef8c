"""Keys and commands."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.key_help import KeySection
from minicpm5_mac.app.screens.dialog import Dialog


class Help(Dialog[None]):
    """Everything that can be pressed, from the widgets' own bindings, and the slash commands."""

    TITLE = "Keys and commands"
    # Two columns, so that a long description wraps below its own beginning, not below the keys.
    DEFAULT_CSS = """
    Help > .dialog-box { height: 94%; }
    Help VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    Help .help-title { color: $primary; text-style: bold; }
    Help .help-row { height: auto; }
    Help .help-keys { width: 33; max-width: 50%; height: auto; padding: 0 1 0 0; }
    Help .help-words { width: 1fr; height: auto; color: $text-muted; }
    Help .help-gap { height: 1; }
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
                yield Static(section.title, classes="help-title", markup=False)
                for keys, description in section.keys:
                    with Horizontal(classes="help-row"):
                        yield Static(keys, classes="help-keys", markup=False)
                        yield Static(description, classes="help-words", markup=False)
                yield Static("", classes="help-gap")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
