"""The conversation on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from minicpm5_mac.app.transcript.assistant_message import AssistantMessage
from minicpm5_mac.app.transcript.entry import Entry
from minicpm5_mac.app.transcript.following_scroll import FollowingScroll
from minicpm5_mac.app.transcript.message import MessageView
from minicpm5_mac.app.transcript.notice_line import NoticeLine, Severity
from minicpm5_mac.app.transcript.user_message import UserMessage

# Every change lays out all widgets, so only the newest messages are some. Beyond KEPT + BATCH those
# before the newest KEPT become plain entries again; scrolling up brings BATCH back at a time.
KEPT = 40
BATCH = 20
# A conversation opens with as many messages as hold this many characters: a few screens full.
_OPENED_WITH = 12_000


class Transcript(FollowingScroll):
    """User's messages, replies and notices, newest at the end.

    Far away messages are not widgets but entries, made into widgets when the reader scrolls up to
    them, so that a long conversation opens at once and stays quick.
    """

    DEFAULT_CSS = Path(__file__).with_name("transcript.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k,alt+up", "previous_message", "Previous message"),
        Binding("j,alt+down", "next_message", "Next message"),
        Binding("G,ctrl+end", "follow", "Follow the end"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._earlier: list[Entry] = []
        self._earlier_line = Static(markup=False, classes="earlier")
        self._items: list[MessageView | NoticeLine] = []
        self._bringing_back = False

    # Filling it

    def add_user(self, message_id: str, text: str) -> UserMessage:
        """Show what the user sent, and go to the end."""
        message = UserMessage(message_id, text)
        self._add(message)
        self.follow()
        return message

    def begin_assistant(self, message_id: str = "", continues: bool = False) -> AssistantMessage:
        """An empty reply; give it the reply's events by `show`. continues: as in Entry."""
        message = AssistantMessage(message_id, continues=continues)
        self._add(message)
        return message

    def add_notice(self, text: str, severity: Severity = "information") -> NoticeLine:
        """Something the user should know."""
        notice = NoticeLine(text, severity)
        self._add(notice)
        return notice

    async def load(self, entries: Sequence[Entry]) -> None:
        """Show a stored conversation in place of what is shown, from its end."""
        await self.remove_children()
        shown = entries[-_near(entries) :] if entries else entries
        self._earlier = list(entries[: len(entries) - len(shown)])
        self._items = [_widget(entry) for entry in shown]
        await self.mount(self._earlier_line, *self._items)
        self._write_earlier()
        self.follow()

    async def remove_from(self, message_id: str) -> None:
        """Take a message and all after it off the screen (a branch starts before it)."""
        for index, item in enumerate(self._items):
            if isinstance(item, MessageView) and item.message_id == message_id:
                gone, self._items = self._items[index:], self._items[:index]
                await self.remove_children(gone)
                return
        for index, entry in enumerate(self._earlier):
            if entry.message_id == message_id:
                await self.load(self._earlier[:index])
                return

    # Reading it

    @property
    def messages(self) -> list[MessageView]:
        """The messages that are widgets now, oldest first."""
        return [item for item in self._items if isinstance(item, MessageView)]

    @property
    def focused_message(self) -> MessageView | None:
        """The message that has the focus or holds the widget that has it."""
        node = self.screen.focused
        while node is not None and not isinstance(node, MessageView):
            node = node.parent if isinstance(node.parent, Widget) else None
        return node

    @property
    def last_reply(self) -> AssistantMessage | None:
        """The newest reply."""
        replies = (item for item in reversed(self._items) if isinstance(item, AssistantMessage))
        return next(replies, None)

    def entries(self) -> list[Entry]:
        """The whole conversation, those that are not widgets included."""
        return [*self._earlier, *(item.entry for item in self._items)]

    # Moving in it

    def action_previous_message(self) -> None:
        self._move_focus(-1)

    def action_next_message(self) -> None:
        self._move_focus(1)

    def action_follow(self) -> None:
        self.follow()

    def _move_focus(self, step: int) -> None:
        messages = self.messages
        if not messages:
            return
        focused = self.focused_message
        if focused not in messages:
            messages[-1 if step < 0 else 0].focus()
            return
        index = messages.index(focused) + step
        if 0 <= index < len(messages):
            messages[index].focus()
        elif index < 0 and self._earlier:
            self._bring_back()

    # Far away messages

    def _add(self, item: MessageView | NoticeLine) -> None:
        self._items.append(item)
        if self._earlier_line.is_attached:
            self.mount(item)
        else:
            self.mount(self._earlier_line, item)
            self._write_earlier()
        if self.following and len(self._items) > KEPT + BATCH:
            far, self._items = self._items[:-KEPT], self._items[-KEPT:]
            self._earlier += [item.entry for item in far]
            self.remove_children(far)
            self._write_earlier()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._earlier and not self.following and new_value < self.size.height:
            self._bring_back()

    def _bring_back(self) -> None:
        if self._bringing_back or not self._earlier:
            return
        self._bringing_back = True
        self.run_worker(self._mount_earlier(), exclusive=False)

    async def _mount_earlier(self) -> None:
        """Make the nearest far away messages widgets; what the reader sees stays in place."""
        batch, self._earlier = self._earlier[-BATCH:], self._earlier[:-BATCH]
        widgets = [_widget(entry) for entry in batch]
        height = self.virtual_size.height
        with self.app.batch_update():
            self._items[:0] = widgets
            await self.mount(*widgets, after=self._earlier_line)
            self._write_earlier()
            self.screen._refresh_layout()
            grown = self.virtual_size.height - height
            self.scroll_to(y=self.scroll_y + grown, animate=False, immediate=True)
        self._bringing_back = False

    def _write_earlier(self) -> None:
        count = len(self._earlier)
        self._earlier_line.update(f"↑ {count} earlier message{'' if count == 1 else 's'}")
        self._earlier_line.display = count > 0


def _near(entries: Sequence[Entry]) -> int:
    """How many entries at the end a conversation opens with."""
    characters = 0
    for count, entry in enumerate(reversed(entries), 1):
        message = entry.message
        characters += len(message.content) + len(message.reasoning) if message else 0
        if count >= KEPT or characters > _OPENED_WITH:
            return count
    return len(entries)


def _widget(entry: Entry) -> MessageView | NoticeLine:
    if entry.message is None:
        return NoticeLine(entry.notice)
    if entry.message.role == "assistant":
        return AssistantMessage(entry=entry)
    return UserMessage(entry.message_id, entry.message.content, versions=entry.versions)


def text_of(entries: Iterable[Entry]) -> str:
    """A conversation as plain text, for the clipboard: who said what, without reasoning."""
    said = [entry.message for entry in entries if entry.message is not None]
    names = {"user": UserMessage.SPEAKER, "assistant": AssistantMessage.SPEAKER}
    return "\n\n".join(f"{names.get(m.role, m.role)}:\n{m.content}" for m in said)
