"""A dialog with a text of several lines to write or change."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from minicpm5_mac.app.screens.dialog import Dialog
from minicpm5_mac.app.widgets.text_field import TextField


class Editing(Dialog[str]):
    """Returns the text; an empty one too. Escape leaves everything as it was."""

    BINDINGS: ClassVar = [Binding("ctrl+s", "accept", "Use this text")]
    DEFAULT_CSS = """
    Editing TextField { height: 12; border: round $border-blurred; }
    Editing TextField:focus { border: round $primary; }
    """

    def __init__(self, title: str, text: str = "", note: str = "") -> None:
        super().__init__()
        self.title = title
        self._text = text
        self._note = note

    def content(self) -> ComposeResult:
        if self._note:
            yield Static(self._note, classes="dialog-note", markup=False)
        yield TextField(self._text, soft_wrap=True, highlight_cursor_line=False)

    def on_mount(self) -> None:
        area = self.query_one(TextField)
        area.move_cursor(area.document.end)
        area.focus()

    def action_accept(self) -> None:
        self.dismiss(self.query_one(TextField).text)
