"""A dialog that asks for one line of text."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Input, Static

from minicpm5_mac.app.screens.dialog import Dialog


class Question(Dialog[str]):
    """Returns the line, without blanks around it; Enter on nothing closes without an answer."""

    def __init__(self, title: str, text: str = "", value: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.title = title
        self._text = text
        self._value = value
        self._placeholder = placeholder

    def content(self) -> ComposeResult:
        if self._text:
            yield Static(self._text, classes="dialog-note", markup=False)
        yield Input(self._value, placeholder=self._placeholder)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)
