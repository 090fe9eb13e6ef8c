"""The list of conversations: find, open, rename, delete, export."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from minicpm5_mac.app.conversation_rows import Row, find_rows
from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.app.screens.dialog import Dialog
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.app.when import when
from minicpm5_mac.conversations.records import Conversation
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.failure import Failure

SEARCH_SECONDS = 0.15
"""A pause in typing after which the search runs."""


@dataclass(frozen=True)
class Picked:
    """What the user wants of a conversation."""

    conversation: str
    do: Literal["open", "export"]


class Conversations(Dialog[Picked]):
    """Newest first; typing searches titles and texts. Rename and delete happen here.

    `deleted` holds the ids that were deleted while it was open.
    """

    TITLE = "Conversations"
    BINDINGS: ClassVar = [
        Binding("enter", "open", "Open", priority=True),
        Binding("ctrl+r", "rename", "Rename", priority=True),
        Binding("ctrl+d", "delete", "Delete", priority=True),
        Binding("ctrl+x", "export", "Export", priority=True),
        Binding("up", "step(-1)", "Up", show=False, priority=True),
        Binding("down", "step(1)", "Down", show=False, priority=True),
        Binding("pageup", "step(-8)", "Page up", show=False, priority=True),
        Binding("pagedown", "step(8)", "Page down", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Conversations > .dialog-box { width: 92; height: 90%; }
    Conversations OptionList { height: 1fr; margin: 1 0 0 0; scrollbar-size-vertical: 1; }
    """

    def __init__(self, store: ConversationStore, current: str | None, words: str = "") -> None:
        """words: what is searched at first."""
        super().__init__()
        self._words = words
        self._store = store
        self._current = current
        self._rows: list[Row] = []
        self._pause: Timer | None = None
        self.deleted: set[str] = set()

    def content(self) -> ComposeResult:
        yield Input(self._words, placeholder="Search titles and messages", select_on_focus=False)
        options = OptionList()
        options.can_focus = False
        yield options
        yield Static(classes="dialog-note", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._find()

    # Finding ------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(SEARCH_SECONDS, self._find)

    @work(exclusive=True, group="find")
    async def _find(self) -> None:
        query = self.query_one(Input).value.strip()
        try:
            rows = await asyncio.to_thread(find_rows, self._store, query)
        except Failure as failure:
            self._show([], str(failure))
            return
        nothing = f"Nothing contains “{query}”." if query else "There are no conversations yet."
        self._show(rows, "" if rows else nothing)

    def _show(self, rows: list[Row], note: str) -> None:
        options = self.query_one(OptionList)
        before = self._chosen()
        self._rows = rows
        options.clear_options()
        now = time.time()
        options.add_options(Option(self._line(row, now)) for row in rows)
        if rows:
            ids = [row.conversation.id for row in rows]
            kept = [ids.index(before.id)] if before and before.id in ids else []
            options.highlighted = kept[0] if kept else 0
        self.query_one(".dialog-note", Static).update(note)

    def _line(self, row: Row, now: float) -> Content:
        conversation = row.conversation
        mark = "● " if conversation.id == self._current else "  "
        count = f"{conversation.messages} message{'' if conversation.messages == 1 else 's'}"
        told = f"  {when(conversation.updated, now)} · {count}"
        line = Content.assemble(mark, conversation.title, (told, "dim"))
        if row.snippet:
            snippet = Content.styled(row.snippet, "dim")
            for start, end in row.marks:
                snippet = snippet.stylize("bold", start, end)
            line = Content.assemble(line, "\n    ", snippet)
        return line

    def _chosen(self) -> Conversation | None:
        at = self.query_one(OptionList).highlighted
        return self._rows[at].conversation if at is not None and at < len(self._rows) else None

    # Acting -------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        options = self.query_one(OptionList)
        if self._rows:
            at = (options.highlighted or 0) + by
            options.highlighted = max(0, min(len(self._rows) - 1, at))

    def action_open(self) -> None:
        if found := self._chosen():
            self.dismiss(Picked(found.id, "open"))

    def action_export(self) -> None:
        if found := self._chosen():
            self.dismiss(Picked(found.id, "export"))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_open()

    @work
    async def action_rename(self) -> None:
        found = self._chosen()
        if found is None:
            return
        title = await self.app.push_screen_wait(Question("Rename", value=found.title))
        if title:
            try:
                await asyncio.to_thread(self._store.rename, found.id, title)
            except Failure as failure:
                self.notify(str(failure), severity="error", markup=False)
            self._find()

    @work
    async def action_delete(self) -> None:
        found = self._chosen()
        if found is None:
            return
        ways = [Way("d", "Delete it for good"), Way("k", "Keep it")]
        text = f"“{found.title}” with its {found.messages} messages, all branches."
        chosen = await self.app.push_screen_wait(Choice("Delete this?", text, ways, "k"))
        if chosen == "d":
            try:
                await asyncio.to_thread(self._store.delete, found.id)
                self.deleted.add(found.id)
            except Failure as failure:
                self.notify(str(failure), severity="error", markup=False)
            self._find()
