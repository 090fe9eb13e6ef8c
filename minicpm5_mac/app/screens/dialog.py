"""What all dialogs share: a box in the middle, its keys at its foot, Escape closes it."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer

Result = TypeVar("Result")


class Dialog(ModalScreen[Result | None]):
    """A modal box. A subclass sets TITLE and composes its content in `content`."""

    BINDINGS: ClassVar = [Binding("escape", "close", "Close")]
    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        background: $background 60%;
        & > .dialog-box {
            width: 76;
            max-width: 100%;
            height: auto;
            max-height: 94%;
            padding: 1 2 0 2;
            background: $surface;
            border: round $primary;
            border-title-color: $primary;
            border-title-style: bold;
        }
        & > .dialog-box > Footer {
            dock: none;
            height: 1;
            margin: 1 0 0 0;
            background: $surface;
            & FooterKey { background: $surface; }
            & FooterKey .footer-key--key { background: $surface; color: $primary; }
            & FooterKey .footer-key--description { background: $surface; color: $text-muted; }
        }
        & OptionList, & Input, & TextArea { background: $surface; }
        & OptionList { border: none; padding: 0; height: auto; text-wrap: nowrap;
            text-overflow: ellipsis; }
        & OptionList:focus { border: none; background-tint: $foreground 0%; }
        & Input { border: round $border-blurred; height: 3; }
        & Input:focus { border: round $primary; background-tint: $foreground 0%; }
        & .dialog-text { height: auto; margin: 0 0 1 0; }
        & .dialog-note { height: auto; color: $text-muted; }
        & .dialog-fault { height: auto; color: $error; }
    }
    """

    def compose(self) -> ComposeResult:
        box = Vertical(classes="dialog-box")
        box.border_title = self.title
        with box:
            yield from self.content()
            yield Footer(compact=True, show_command_palette=False)

    def content(self) -> ComposeResult:
        """The widgets above the keys."""
        raise NotImplementedError

    def action_close(self) -> None:
        self.dismiss(None)
