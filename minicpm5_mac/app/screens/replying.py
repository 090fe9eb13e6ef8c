"""The conversation on the screen: its messages, its composer, and the reply that is running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual import work
from textual.app import ComposeResult
from textual.screen import Screen

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.attached_files import attached
from minicpm5_mac.app.banner_text import banner
from minicpm5_mac.app.flows import context_full
from minicpm5_mac.app.live_chat import LiveChat, Opened
from minicpm5_mac.app.model_state import ModelState
from minicpm5_mac.app.reply_runner import Outcome, ReplyRunner
from minicpm5_mac.app.reply_state import ReplyState
from minicpm5_mac.app.status_segments import StatusView
from minicpm5_mac.app.transcript import AssistantMessage, MessageView, Transcript
from minicpm5_mac.app.transcript_entries import entries, shown_text
from minicpm5_mac.app.widgets.banner import Banner
from minicpm5_mac.app.widgets.composer import Composer
from minicpm5_mac.app.widgets.composer_panel import ComposerPanel
from minicpm5_mac.app.widgets.status_line import StatusLine
from minicpm5_mac.app.widgets.welcome import Welcome
from minicpm5_mac.conversations.records import CRASHED, StoredMessage
from minicpm5_mac.events import (
    Answer,
    ContextFull,
    EngineStopped,
    Event,
    HistoryShortened,
    MessageSaved,
    Notice,
    Reasoning,
    Usage,
)
from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from minicpm5_mac.app.chat_app import ChatApp

_log = logging.getLogger(__name__)


class ReplyingScreen(Screen[None]):
    """Asks the session for replies and shows what their events say; commands are ChatScreen's."""

    DEFAULT_CSS = """
    ReplyingScreen {
        background: $background;
        & Transcript { height: 1fr; padding: 0 1; }
        & Welcome { display: none; }
        &.-empty Transcript { display: none; }
        &.-empty Welcome { display: block; }
        &.-composing Transcript, &.-composing Welcome { display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self.runner = ReplyRunner(self, self._show_batch, self._reply_ended)
        self.waiting = ""
        self.editing: int | None = None
        self.unanswered = False
        self.cut = False
        self.title_shown = ""
        self._set_aside = ""
        self._sending = ""
        self._user_view: MessageView | None = None
        self._reply_view: AssistantMessage | None = None
        self._model = ModelState("")

    def compose(self) -> ComposeResult:
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

    # Opening ------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.composer.focus()
        self._open_first()

    @work(group="open")
    async def _open_first(self) -> None:
        try:
            opened = await asyncio.to_thread(self.live.open)
        except Failure as failure:
            self.complain(failure)
            return
        await self.show_opened(opened)
        self._send_waiting()

    async def show_opened(self, opened: Opened) -> None:
        """Show another conversation, with its draft."""
        last_usage = next((m.usage for m in reversed(opened.messages) if m.usage), Usage())
        self.runner.recall_counts(last_usage)
        self._stop_editing()
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
        self.unanswered = last is not None and last.role == "user"
        self.cut = last is not None and last.cause in ("error", CRASHED)
        with self.app.batch_update():
            self.set_class(not messages, "-empty")
            await self.transcript.load(entries(messages))
        self.refresh_status()

    def show_title(self, title: str) -> None:
        self.title_shown = title
        self.composer.border_title = None if self.has_class("-empty") else title
        self.chat_app.title_window("" if self.has_class("-empty") else title)

    # The model ----------------------------------------------------------------------------------

    def show_model(self, model: ModelState) -> None:
        """Show where the model stands; a message that waited for it goes out."""
        was_ready = self._model.ready is not None
        self._model = model
        self.query_one(Welcome).state = model
        if model.ready is not None and not was_ready:
            for note in model.ready.notes:
                self.notify(note, timeout=8, markup=False)
            self._send_waiting()
        elif (model.failed is not None or model.stopped) and self.waiting:
            self.take_back_waiting()
        self.refresh_status()

    def refresh_status(self) -> None:
        """Bring status line and banner up to date."""
        model, settings = self._model, self.live.settings
        self.query_one(StatusLine).view = StatusView(
            model=model.name,
            model_stage=model.line(),
            model_broken=bool(model.stopped or model.failed),
            can_think=model.ready is None or model.ready.thinking,
            thinking=settings.thinking,
            context_limit=model.ready.context_limit if model.ready else 0,
            reply=self.reply,
        )
        said = banner(
            model,
            self.reply,
            waiting=self.waiting,
            editing=self.editing is not None,
            unanswered=self.unanswered,
            cut=self.cut,
        )
        self.query_one(Banner).show(said)

    # Sending ------------------------------------------------------------------------------------

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        typed = slash_commands.read(event.text)
        if typed is None:
            self._submit(event.text)
        elif typed.command is None:
            self._give_back(event.text)
            self.notify(
                f"There is no command /{typed.name}. A blank before it sends it as a message.",
                severity="warning",
                markup=False,
            )
        else:
            self.chat_app.run_slash_command(typed.command, typed.argument)

    def _submit(self, text: str) -> None:
        model = self._model
        if model.failed is not None or model.stopped:
            self._give_back(text)
            self.notify("No model is loaded; the message stays here.", severity="warning")
        elif self.reply.running or model.ready is None or not self.live.is_open:
            self.waiting = f"{self.waiting}\n\n{text}" if self.waiting else text
            self.refresh_status()
        else:
            self._send(text)

    def _send_waiting(self) -> None:
        ready = self._model.ready is not None and self.live.is_open
        if self.waiting and ready and not self.reply.running:
            text, self.waiting = self.waiting, ""
            self._send(text)

    def take_back_waiting(self) -> None:
        """Put a message that was to be sent later back into the composer."""
        text, self.waiting = self.waiting, ""
        self._give_back(text)
        self.refresh_status()

    def _give_back(self, text: str) -> None:
        draft = self.draft
        self.composer.load(f"{text}\n\n{draft}" if draft.strip() else text)

    @work(group="reply")
    async def _send(self, text: str) -> None:
        self.runner.prepare()
        self.refresh_status()
        editing = self.editing
        try:
            files = await asyncio.to_thread(attached, text, Path())
            before = await asyncio.to_thread(self.live.session.messages) if editing else ()
        except Failure as failure:
            self.runner.give_up()
            self._give_back(text)
            self.complain(failure)
            return
        session = self.live.session
        if editing is None:
            start = lambda: session.send(text, files)  # noqa: E731
        else:
            at = next((i for i, m in enumerate(before) if m.id == editing), len(before))
            await self.show_messages(before[:at])
            self._stop_editing()
            start = lambda: session.edit(editing, text, files or None)  # noqa: E731
        self.set_class(False, "-empty")
        self._sending = text
        self._user_view = self.transcript.add_user("", shown_text(text, [f.path for f in files]))
        self.begin_reply(start)

    def begin_reply(
        self, events: Callable[[], Iterator[Event]], continued: StoredMessage | None = None
    ) -> None:
        """Show an empty reply, or one that goes on, and fill it with these events."""
        view = self.transcript.begin_assistant(str(continued.id) if continued else "")
        if continued is not None:
            for text, kind in ((continued.reasoning, Reasoning), (continued.content, Answer)):
                if text:
                    view.show(kind(text))
        self._reply_view = view
        self.unanswered = self.cut = False
        self.runner.run(events)
        self.refresh_status()

    def _show_batch(self, batch: list[Event]) -> None:
        view = self._reply_view
        for event in batch:
            match event:
                case MessageSaved(role="user", message=message) if self._user_view is not None:
                    self._user_view.message_id = str(message)
                    self._sending = ""
                    self._keep_draft(self._unsent())
                case MessageSaved(role="assistant", message=message) if view is not None:
                    view.message_id = str(message)
                case Notice(text=text):
                    self.transcript.add_notice(text)
                case HistoryShortened():
                    self.transcript.add_notice(_shortened(event))
                case EngineStopped():
                    self.chat_app.model_stopped(event)
                case _ if view is not None:
                    view.show(event)
        self.refresh_status()

    def _reply_ended(self, outcome: Outcome) -> None:
        sending, self._sending = self._sending, ""
        if self._reply_view is not None:
            self._reply_view.finish("failed" if outcome.error else "")
            self.unanswered = not self._reply_view.message_id and outcome.full is None
            self.cut = bool(outcome.end and outcome.end.finish == "failed") and not self.unanswered
            self._reply_view = None
        if outcome.error is not None:
            if sending and not outcome.saved:
                self._give_back(sending)
            self.complain(outcome.error)
            self.show_stored()
        elif outcome.full is not None:
            self._ask_about_full(outcome.full)
        if self.waiting:
            if outcome.cancelled or outcome.error or outcome.full:
                self.take_back_waiting()
            else:
                self._send_waiting()
        if self.chat_app.options.bell:
            self.app.bell()
        self._refresh_title()
        self.refresh_status()

    @work(group="full")
    async def _ask_about_full(self, full: ContextFull) -> None:
        """The conversation does not fit: leave old content out of the prompt, or leave it."""
        if await context_full.shorten(self.app, full):
            self.begin_reply(lambda: self.live.session.regenerate(shorten=True))

    @work(group="show", exclusive=True)
    async def show_stored(self) -> None:
        """Show the conversation as it is stored."""
        if self.live.is_open and not self.reply.running:
            await self.show_messages(await asyncio.to_thread(self.live.session.messages))

    @work(group="title", exclusive=True)
    async def _refresh_title(self) -> None:
        try:
            self.show_title(await asyncio.to_thread(self.live.title))
        except Failure as failure:
            _log.warning("no title: %s", failure)

    def complain(self, error: Exception) -> None:
        """Say what went wrong: a failure in its own words, anything else with where to look."""
        if isinstance(error, Failure):
            self.notify(str(error), severity="error", timeout=8, markup=False)
        else:
            _log.error("unexpected", exc_info=error)
            said = f"Something went wrong in the app ({type(error).__name__}). f8 shows the log."
            self.notify(said, severity="error", timeout=8, markup=False)

    # Stepping back ------------------------------------------------------------------------------

    def on_composer_dismissed(self, event: Composer.Dismissed) -> None:
        event.stop()
        self.action_step_back()

    def action_step_back(self) -> None:
        """Escape: stop the reply, take a waiting message back, leave an edit, find the composer."""
        if self.reply.running:
            self.action_stop()
        elif self.waiting:
            self.take_back_waiting()
        elif self.editing is not None:
            self._stop_editing()
            self.refresh_status()
        self.composer.focus()

    def action_stop(self) -> None:
        if self.reply.running:
            self.live.session.cancel()

    def clear_draft(self) -> None:
        """Empty the composer; the up key brings the text back."""
        self.composer.take()
        if self.editing is not None:
            self._stop_editing()
            self.refresh_status()
        self.notify("Draft cleared; the up key brings it back.", timeout=3)

    def start_editing(self, message: StoredMessage) -> None:
        """Put an earlier message into the composer; the draft there comes back afterwards."""
        if self.editing is None:
            self._set_aside = self.draft
        self.editing = message.id
        self.composer.load(message.content)
        self.composer.focus()
        self.refresh_status()

    def _stop_editing(self) -> None:
        if self.editing is not None:
            self.editing = None
            if self.draft.strip():
                self.composer.input_history.add(self.draft)
            self.composer.load(self._set_aside)
            self._set_aside = ""

    # Draft --------------------------------------------------------------------------------------

    def on_composer_panel_draft_changed(self, event: ComposerPanel.DraftChanged) -> None:
        event.stop()
        self._keep_draft(self._unsent())

    def _unsent(self) -> str:
        """Everything that was typed and is not stored as a message."""
        own = self._set_aside if self.editing is not None else self.draft
        return "\n\n".join(part for part in (self._sending, self.waiting, own) if part.strip())

    @work(group="draft", exclusive=True)
    async def _keep_draft(self, text: str) -> None:
        if self.live.is_open:
            try:
                await asyncio.to_thread(self.live.save_draft, text)
            except Failure as failure:
                _log.warning("the draft could not be kept: %s", failure)

    def keep_draft_now(self) -> None:
        """Keep the draft before the app ends."""
        if self.live.is_open:
            try:
                self.live.save_draft(self._unsent())
            except Failure as failure:
                _log.warning("the draft could not be kept: %s", failure)

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


def _shortened(event: HistoryShortened) -> str:
    parts = []
    if event.without_reasoning:
        parts.append(f"the reasoning of {len(event.without_reasoning)} replies")
    if event.left_out:
        parts.append(f"{len(event.left_out)} old messages")
    return (
        f"To make room, {' and '.join(parts)} are no longer in the prompt "
        f"({event.tokens_before:,} → {event.tokens_after:,} tokens). They are still stored."
    )
