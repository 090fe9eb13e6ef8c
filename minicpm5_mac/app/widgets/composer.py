"""The text area in which a message is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.message import Message

from minicpm5_mac.app.input_history import InputHistory
from minicpm5_mac.app.widgets.text_field import TextField

# What a terminal may put between pasted lines, and what Python would split lines at besides.
_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters that have no place in a text and would move a terminal's cursor.
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")


class Composer(TextField):
    """Several lines, with history at the edges. Enter sends; a pasted text is one piece."""

    BINDINGS: ClassVar = [
        Binding("enter", "submit", "Send"),
        Binding("shift+enter,ctrl+j,alt+enter", "newline", "New line"),
        Binding("up", "up", "Line up; earlier message at the top", show=False),
        Binding("down", "down", "Line down; later message at the bottom", show=False),
        Binding("tab", "complete", "Take the completion; to the messages", show=False),
        Binding("escape", "dismiss", "Close the list; stop the reply", show=False),
        Binding("pageup", "page(-1)", "Messages: a page up", show=False),
        Binding("pagedown", "page(1)", "Messages: a page down", show=False),
        # A text area has keys of its own there.
        Binding("f6", "screen.mode", "Tools: ask, accept edits, read only", show=False),
        Binding("f7", "screen.changes", "Tools: changed files, take back", show=False),
    ]
    DEFAULT_CSS = """
    Composer {
        height: auto;
        min-height: 3;
        max-height: 12;
        margin: 0 1;
        padding: 0 1;
        border: round $border-blurred;
        border-title-color: $text-muted;
        background: $background;
        scrollbar-size-vertical: 1;
        &:focus { border: round $primary; }
        & .text-area--cursor-line { background: $background; }
        & .text-area--placeholder { color: $text-muted; }
    }
    Composer.-expanded { height: 1fr; max-height: 100%; }
    """

    @dataclass
    class Submitted(Message):
        """A text was sent off; it is in the history and no longer in the composer."""

        text: str

    class Dismissed(Message):
        """Escape, with nothing of the composer's own to close."""

    @dataclass
    class Paged(Message):
        """A page key that is meant for the messages. pages: -1 is up, 1 is down."""

        pages: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Message, /command, or @file",
        )
        self.input_history = InputHistory()
        self.steer: Callable[[str], bool] = lambda key: False
        """Takes a key for the list of candidates, if one is shown; says whether it did."""

    def load(self, text: str) -> None:
        """Replace the text, with the caret at its end, as one step that undo takes back."""
        self.replace(text, self.document.start, self.document.end)
        self.move_cursor(self.document.end)

    def take(self) -> str:
        """Empty the composer into the history and return what was in it."""
        text = self.text
        self.input_history.add(text)
        self.clear()
        return text

    def submit(self) -> None:
        """Hand over what is written; what is typed from now on belongs to the next message."""
        self.post_message(self.Submitted(self.take()))

    @property
    def line_to_caret(self) -> str:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def action_submit(self) -> None:
        if not self.steer("enter") and self.text.strip():
            self.submit()

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_complete(self) -> None:
        if not self.steer("tab"):
            self.screen.focus_previous()

    def action_dismiss(self) -> None:
        if not self.steer("escape"):
            self.post_message(self.Dismissed())

    def action_up(self) -> None:
        if self.steer("up"):
            return
        if self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(self.input_history.older(self.text))
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self.steer("down"):
            return
        if self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self.input_history.newer(self.text))
        else:
            self.action_cursor_down()

    def action_page(self, pages: int) -> None:
        """Pages belong to the messages, unless the composer has the window."""
        if not self.has_class("-expanded"):
            self.post_message(self.Paged(pages))
        elif pages < 0:
            self.action_cursor_page_up()
        else:
            self.action_cursor_page_down()

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.load(text)

    async def _on_paste(self, event: events.Paste) -> None:
        # One edit however many lines it has: nothing is sent line by line, one undo removes it.
        event.stop()
        event.prevent_default()
        text = _CONTROLS.sub("", _LINE_ENDS.sub("\n", event.text))
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)
            self.focus()

    async def _on_key(self, event: events.Key) -> None:
        # Textual runs a binding only after its key has bubbled up to the app. Characters typed
        # meanwhile would overtake it: an Enter would send what was typed after it.
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            event.prevent_default()
            self._restart_blink()
            await self.run_action(binding.action)
            return
