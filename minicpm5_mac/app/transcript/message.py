"""What user's and assistant's messages have in common: focus, copying, editing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Label

from minicpm5_mac.app.transcript.entry import Entry


@dataclass
class CopyRequested(Message):
    """The user wants `text` in the clipboard; `what` names it ("message", "2 code blocks")."""

    text: str
    what: str


@dataclass
class EditRequested(Message):
    """The user wants to edit a message and send it again as a branch."""

    message_id: str
    text: str


class MessageView(Widget, can_focus=True):
    """A message of the transcript; it takes the focus, so that keys can act on it.

    message_id: the store's id, "" until the store knows the message.
    """

    DEFAULT_CSS = Path(__file__).with_name("message.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c,y", "copy_message", "Copy message", tooltip="Copy the message's whole text"),
        Binding("b", "copy_code", "Copy code", tooltip="Copy every code block of the message"),
    ]
    SPEAKER: ClassVar[str] = ""

    def __init__(
        self,
        message_id: str = "",
        *,
        versions: tuple[int, int] = (0, 0),
        continues: bool = False,
        id: str | None = None,
    ) -> None:
        """versions, continues: as in Entry."""
        super().__init__(id=id, classes="continues" if continues else None)
        self.message_id = message_id
        self.versions = versions
        self._speaker: Label | None = None
        self.continues = continues

    @property
    def text(self) -> str:
        """The message's text as it was written, for copying and editing."""
        raise NotImplementedError

    @property
    def entry(self) -> Entry:
        """The message as it would be loaded again."""
        raise NotImplementedError

    def code_blocks(self) -> list[tuple[str, str]]:
        """(language, code) of each code block in the message."""
        return []

    def compose(self) -> ComposeResult:
        self._speaker = Label(self._heading, classes="speaker", markup=False)
        yield self._speaker

    def saved(self, message_id: int, siblings: tuple[int, ...]) -> None:
        """The store knows the message, and which versions of it there are."""
        self.message_id = str(message_id)
        if message_id in siblings:
            self.versions = (siblings.index(message_id) + 1, len(siblings))
        if self._speaker is not None:
            self._speaker.update(self._heading)

    @property
    def _heading(self) -> str:
        number, count = self.versions
        which = f"  {number} of {count}  [ previous  ] next" if count > 1 else ""
        return f"{self.SPEAKER}{which}"

    def action_copy_message(self) -> None:
        self.post_message(CopyRequested(self.text, "message"))

    def action_copy_code(self) -> None:
        blocks = self.code_blocks()
        count = "no code block" if not blocks else f"{len(blocks)} code blocks"
        what = "code block" if len(blocks) == 1 else count
        self.post_message(CopyRequested("\n\n".join(code for _, code in blocks), what))
