"""The screen with the conversation: what it is made of, what it shows, the draft it keeps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual import events, work
from textual.app import ComposeResult
from textual.screen import Screen

from minicpm5_mac.app.banner_text import banner
from minicpm5_mac.app.live_chat import LiveChat, Opened
from minicpm5_mac.app.model_state import ModelState
from minicpm5_mac.app.reply_runner import ReplyRunner
from minicpm5_mac.app.reply_state import ReplyState
from minicpm5_mac.app.status_segments import StatusView
from minicpm5_mac.app.tool_words import mode_segment
from minicpm5_mac.app.transcript import Transcript
from minicpm5_mac.app.transcript_entries import broke_off, entries
from minicpm5_mac.app.unsent import Unsent
from minicpm5_mac.app.widgets.banner import Banner
from minicpm5_mac.app.widgets.composer import Composer
from minicpm5_mac.app.widgets.composer_panel import ComposerPanel
from minicpm5_mac.app.widgets.status_line import StatusLine
from minicpm5_mac.app.widgets.welcome import Welcome
from minicpm5_mac.app.widgets.workspace_bar import WorkspaceBar
from minicpm5_mac.conversations.records import CRASHED, StoredMessage
from minicpm5_mac.events import Usage
from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from minicpm5_mac.app.chat_app import ChatApp

_log = logging.getLogger(__name__)


class ConversationScreen(Screen[None]):
    """Shows one conversation and its model; replies are asked for by ReplyingScreen.

    unanswered: the last message got no reply. cut: its reply broke off by a fault.
    full: it did not fit in the context.
    """

    AUTO_FOCUS = "Composer"
    DEFAULT_CSS = """
    ConversationScreen {
        background: $background;
        & Transcript { height: 1fr; padding: 0 1; }
        & Welcome { display: none; }
        &.-empty Transcript { display: none; }
        &.-empty Welcome { display: block; }
        &.-composing Transcript, &.-composing Welcome { display: none; }
    }
    """

    runner: ReplyRunner

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self.unsent = Unsent()
        self.unanswered = False
        self.cut = False
        self.full = False
        self.title_shown = ""
        self._model = ModelState("")

    def compose(self) -> ComposeResult:
        yield WorkspaceBar()
        yield Welcome()
        yield Transcript()
        yield Banner()
        yield ComposerPanel(Path())
        yield StatusLine(hint="f1 keys · ctrl+p commands")

    # What it is made of -------------------------------------------------------------------------

    @property
    def chat_app(self) -> ChatApp:
        return cast("ChatApp", self.app)

    @property
    def live(self) -> LiveChat:
        return self.chat_app.live

    @property
    def reply(self) -> ReplyState:
        return self.runner.state

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def draft(self) -> str:
        return self.composer.text

    def selected_draft(self) -> str:
        """The text that is selected in the composer."""
        return self.composer.selected_text

    def on_key(self, event: events.Key) -> None:
        # Typing belongs to the composer wherever the focus is, but for a message's own keys.
        if event.is_printable and event.character and self.transcript.focused_message is None:
            event.stop()
            self.composer.focus()
            self.composer.insert(event.character)

    # Showing ------------------------------------------------------------------------------------

    async def show_opened(self, opened: Opened) -> None:
        """Show another conversation, with its draft."""
        last_usage = next((m.usage for m in reversed(opened.messages) if m.usage), Usage())
        self.runner.recall_counts(last_usage)
        self.stop_editing()
        for message in opened.messages:
            if message.role == "user":
                self.composer.input_history.add(message.content)
        if opened.draft and not self.draft.strip():
            self.composer.load(opened.draft)
        elif opened.draft:
            self.composer.input_history.add(opened.draft)
        await self.show_messages(opened.messages)
        self.show_title(opened.title)
        self.refresh_status()

    async def show_messages(self, messages: Sequence[StoredMessage]) -> None:
        """Show these messages and nothing else."""
        last = messages[-1] if messages else None
        self.full = False
        self.unanswered = last is not None and last.role == "user"
        self.cut = broke_off(messages) or (last is not None and last.cause in ("error", CRASHED))
        with self.app.batch_update():
            self.set_class(not messages, "-empty")
            await self.transcript.load(entries(messages))
        self.refresh_status()

    @work(group="show", exclusive=True)
    async def show_stored(self) -> None:
        """Show the conversation as it is stored."""
        if self.live.is_open and not self.reply.running:
            try:
                stored = await asyncio.to_thread(self.live.session.messages)
            except Exception as error:
                self.complain(error)
                return
            await self.show_messages(stored)

    def show_title(self, title: str) -> None:
        self.title_shown = title
        self.composer.border_title = None if self.has_class("-empty") else title
        self.chat_app.title_window("" if self.has_class("-empty") else title)

    @work(group="title", exclusive=True)
    async def refresh_title(self) -> None:
        """Show the title as it is stored: a first message gives a new conversation its own."""
        try:
            self.show_title(await asyncio.to_thread(self.live.title))
        except Exception as error:
            _log.warning("no title: %s", error)

    def refresh_status(self) -> None:
        """Bring status line and banner up to date."""
        if not self.query(StatusLine):
            return  # the app is ending, and a task of it still had something to show
        model, settings = self._model, self.live.settings
        self.query_one(StatusLine).view = StatusView(
            model=model.name,
            model_stage=model.line(),
            model_fault="stopped" if model.stopped else "not loaded" if model.failed else "",
            can_think=model.ready is None or model.ready.thinking,
            thinking=settings.thinking,
            context_limit=model.ready.context_limit if model.ready else 0,
            tools=mode_segment(self.live.toolbox),
            reply=self.reply,
        )
        self.query_one(WorkspaceBar).show(self.live.toolbox)
        said = banner(
            model,
            self.reply,
            waiting=self.unsent.waiting,
            editing=self.unsent.editing is not None,
            unanswered=self.unanswered,
            cut=self.cut,
            full=self.full,
        )
        self.query_one(Banner).show(said)

    def complain(self, error: BaseException) -> None:
        """Say what went wrong: a failure in its own words, anything else with where to look."""
        if isinstance(error, Failure):
            self.notify(str(error), severity="error", timeout=8, markup=False)
        else:
            _log.error("unexpected", exc_info=error)
            said = f"Something went wrong in the app ({type(error).__name__}). f8 shows the log."
            self.notify(said, severity="error", timeout=8, markup=False)

    # Draft --------------------------------------------------------------------------------------

    def give_back(self, text: str) -> None:
        """Put a text that was not sent into the composer, before what is in there."""
        draft = self.draft
        self.composer.load(f"{text}\n\n{draft}" if draft.strip() else text)

    def start_editing(self, message: StoredMessage) -> None:
        """Put an earlier message into the composer; the draft there comes back afterwards."""
        self.unsent.begin_edit(message.id, message.content, self.draft)
        self.composer.load(message.content)
        self.composer.focus()
        self.refresh_status()

    def stop_editing(self) -> None:
        """Leave an edit; its text goes into the history, the draft of before comes back."""
        if self.unsent.editing is not None:
            if self.draft.strip():
                self.composer.input_history.add(self.draft)
            self.composer.load(self.unsent.end_edit())
            self.refresh_status()

    def clear_draft(self) -> None:
        """Empty the composer; the up key brings the text back."""
        self.composer.take()
        self.stop_editing()
        self.notify("Draft cleared; the up key brings it back.", timeout=3)

    def on_composer_panel_draft_changed(self, event: ComposerPanel.DraftChanged) -> None:
        event.stop()
        self.keep_draft()

    @work(group="draft", exclusive=True)
    async def keep_draft(self) -> None:
        """Store what was typed and not sent."""
        if self.live.is_open:
            try:
                await asyncio.to_thread(self.live.save_draft, self.unsent.all(self.draft))
            except Exception as error:  # nothing that is typed may be in the way of typing
                _log.warning("the draft could not be kept: %s", error)

    def keep_draft_now(self) -> None:
        """Keep the draft before the app ends."""
        if self.live.is_open:
            try:
                self.live.save_draft(self.unsent.all(self.draft))
            except Exception as error:  # nothing that is typed may be in the way of typing
                _log.warning("the draft could not be kept: %s", error)

    # The window ---------------------------------------------------------------------------------

    def on_composer_panel_expanded(self, event: ComposerPanel.Expanded) -> None:
        event.stop()
        self.set_class(event.expanded, "-composing")

    def on_composer_paged(self, event: Composer.Paged) -> None:
        event.stop()
        if event.pages < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)
