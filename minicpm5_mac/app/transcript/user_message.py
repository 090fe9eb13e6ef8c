"""What the user wrote."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from minicpm5_mac.app.markdown import MarkdownDocument, PlainText
from minicpm5_mac.app.transcript.entry import Entry
from minicpm5_mac.app.transcript.message import EditRequested, MessageView
from minicpm5_mac.messages import Message


class UserMessage(MessageView):
    """The user's text, shown exactly as it was sent."""

    DEFAULT_CSS = Path(__file__).with_name("user_message.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "Edit and resend", tooltip="Send an edited version as a new branch"),
    ]
    SPEAKER = "You"

    def __init__(
        self,
        message_id: str,
        text: str,
        *,
        versions: tuple[int, int] = (0, 0),
        id: str | None = None,
    ) -> None:
        super().__init__(message_id, versions=versions, id=id)
        self._text = text

    @property
    def text(self) -> str:
        return self._text

    @property
    def entry(self) -> Entry:
        return Entry(self.message_id, Message("user", self._text), versions=self.versions)

    def code_blocks(self) -> list[tuple[str, str]]:
        document = MarkdownDocument()
        document.append(self._text)
        document.finish()
        return document.code_blocks()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield PlainText(self._text)

    def action_edit(self) -> None:
        self.post_message(EditRequested(self.message_id, self._text))
