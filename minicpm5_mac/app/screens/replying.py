"""Sending messages and showing the replies to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from textual import work

from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.attached_files import attached
from minicpm5_mac.app.flows import context_full
from minicpm5_mac.app.model_state import ModelState
from minicpm5_mac.app.reply_runner import Outcome, ReplyRunner
from minicpm5_mac.app.screens.approval import Approval
from minicpm5_mac.app.screens.conversation import ConversationScreen
from minicpm5_mac.app.tool_words import changed_files, danger, mode_segment
from minicpm5_mac.app.transcript import AssistantMessage, MessageView
from minicpm5_mac.app.transcript_entries import shortened_notice, shown_text
from minicpm5_mac.app.widgets.composer import Composer
from minicpm5_mac.app.widgets.welcome import Welcome
from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.events import (
    Answer,
    ApprovalWanted,
    ContextFull,
    EngineStopped,
    Event,
    FilesChanged,
    HistoryShortened,
    MessageSaved,
    Notice,
    Reasoning,
    StepStarted,
    ToolFinished,
)
from minicpm5_mac.failure import Failure


class ReplyingScreen(ConversationScreen):
    """Asks the session for replies and shows what their events say; commands are ChatScreen's."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = ReplyRunner(self, self._show_batch, self._reply_ended)
        self._user_view: MessageView | None = None
        self._reply_view: AssistantMessage | None = None
        self._noticed: set[str] = set()
        self._approval: Approval | None = None

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
        self._prepare_tools()
        self._send_waiting()

    @work(group="tools")
    async def _prepare_tools(self) -> None:
        """Find out whether the sandbox holds, so that the answer is there before a message is."""
        try:
            for text in await asyncio.to_thread(self.live.prepare_tools):
                self.notify(text, severity="warning", timeout=20, markup=False)
        except Failure as failure:
            self.complain(failure)
        self.refresh_status()

    def show_model(self, model: ModelState) -> None:
        """Show where the model stands; a message that waited for it goes out."""
        was_ready = self._model.ready is not None
        self._model = model
        self.query_one(Welcome).state = model
        if model.ready is not None and not was_ready:
            if not self.has_class("-empty"):  # an empty conversation has them in its middle
                for note in model.ready.notes:
                    self.notify(note, timeout=5, markup=False)
            self._send_waiting()
        elif (model.failed is not None or model.stopped) and self.unsent.waiting:
            self.take_back_waiting()
        self.refresh_status()

    # Sending ------------------------------------------------------------------------------------

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        typed = slash_commands.read(event.text)
        if typed is None:
            self._submit(event.text)
        elif typed.command is None:
            self.give_back(event.text)
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
            self.give_back(text)
            self.notify("No model is loaded; the message stays here.", severity="warning")
        elif self.reply.running or model.ready is None or not self.live.is_open:
            self.unsent.wait(text)
            self.keep_draft()
            self.refresh_status()
        else:
            self._send(text)

    def _send_waiting(self) -> None:
        ready = self._model.ready is not None and self.live.is_open
        if self.unsent.waiting and ready and not self.reply.running:
            self._send(self.unsent.take_waiting())

    def take_back_waiting(self) -> None:
        """Put a message that was to be sent later back into the composer."""
        self.give_back(self.unsent.take_waiting())
        self.refresh_status()

    def _send(self, text: str) -> None:
        # Before anything is waited for: from here on nothing else starts, nothing is forgotten.
        self.runner.prepare()
        self.unsent.sending = text
        self.refresh_status()
        self._send_prepared(text)

    @work(group="reply")
    async def _send_prepared(self, text: str) -> None:
        editing = self.unsent.editing
        session = self.live.session
        try:
            files = await asyncio.to_thread(attached, text, Path())
            before = await asyncio.to_thread(session.messages) if editing is not None else ()
        except Exception as error:
            self.runner.give_up()
            self.give_back(self.unsent.take_sending())
            self.complain(error)
            self.refresh_status()
            return
        if editing is None:
            start = lambda: session.send(text, files)  # noqa: E731
        else:
            at = next((i for i, m in enumerate(before) if m.id == editing), len(before))
            await self.show_messages(before[:at])
            self.stop_editing()
            start = lambda: session.edit(editing, text, files or None)  # noqa: E731
        self.set_class(False, "-empty")
        self._user_view = self.transcript.add_user("", shown_text(text, [f.path for f in files]))
        self.begin_reply(start)

    # Replies ------------------------------------------------------------------------------------

    def begin_reply(
        self,
        events: Callable[[], Iterator[Event]],
        continued: StoredMessage | None = None,
        *,
        continues: bool = False,
    ) -> None:
        """Show an empty reply, or one that goes on, and fill it with these events.

        continues: it follows results of tools, in the same turn.
        """
        view = self.transcript.begin_assistant(str(continued.id) if continued else "", continues)
        if continued is not None:
            for text, kind in ((continued.reasoning, Reasoning), (continued.content, Answer)):
                if text:
                    view.show(kind(text))
        self._reply_view = view
        self.unanswered = self.cut = self.full = False
        self.runner.run(events)
        self.refresh_status()

    def _show_batch(self, batch: list[Event]) -> None:
        for event in batch:
            view = self._reply_view
            match event:
                case StepStarted(number=number) if number > 1:
                    self._reply_view = self.transcript.begin_assistant(continues=True)
                case ApprovalWanted():
                    if view is not None:
                        view.show(event)
                    self._ask(event)
                case FilesChanged(changes=changes) if self.live.toolbox is not None:
                    workspace = self.live.toolbox.policy.workspace
                    self.transcript.add_notice(changed_files(changes, workspace))
                case MessageSaved(role="user") if self._user_view is not None:
                    self._user_view.saved(event.message, event.siblings)
                    self._user_view = None
                    self.unsent.take_sending()
                    self.keep_draft()
                case MessageSaved(role="assistant") if view is not None:
                    view.saved(event.message, event.siblings)
                case Notice(code=code, text=text, once=once):
                    if not (once and code in self._noticed):
                        self.transcript.add_notice(text)
                    self._noticed.add(code)
                case HistoryShortened():
                    self.transcript.add_notice(shortened_notice(event))
                case EngineStopped():
                    self.chat_app.model_stopped(event)
                case _ if view is not None:
                    if isinstance(event, ToolFinished):
                        self._close_approval(event.id)
                    view.show(event)
        self.refresh_status()

    @work(group="approval")
    async def _ask(self, wanted: ApprovalWanted) -> None:
        """Ask the user whether a call may run. Without an answer it may not."""
        toolbox, session = self.live.toolbox, self.live.session
        self._approval = Approval(
            wanted,
            danger=danger(toolbox) if toolbox is not None else "",
            mode=mode_segment(toolbox),
            drafting=lambda: bool(self.draft.strip()),
            typed=self.composer.insert,
        )
        if self.chat_app.options.bell:
            self.app.bell()
        decision = await self.app.push_screen_wait(self._approval)
        session.decide(wanted.id, decision or Decision(False))

    def _close_approval(self, call: int | None = None) -> None:
        """Take the dialog away: its call was ended, or the whole turn was (None)."""
        dialog = self._approval
        if dialog is None or (call is not None and dialog.wanted.id != call):
            return
        self._approval = None
        if dialog in self.app.screen_stack:
            while self.app.screen is not dialog:
                self.app.screen.dismiss(None)
            dialog.dismiss(None)

    def _reply_ended(self, outcome: Outcome) -> None:
        sending = self.unsent.take_sending()
        self._close_approval()
        if self._reply_view is not None:
            view, end = self._reply_view, outcome.end
            view.finish("failed" if outcome.error else "")
            self.full = outcome.full is not None
            in_turn = view.continues or bool(view.runs)
            self.unanswered = not view.message_id and outcome.full is None and not in_turn
            self.cut = (
                end is not None
                and not self.unanswered
                and (end.finish == "failed" or (in_turn and end.finish != "complete"))
            )
            self._reply_view = None
        if outcome.error is not None:
            if sending and not outcome.saved:
                self.give_back(sending)
            self.complain(outcome.error)
            self.show_stored()
        elif outcome.full is not None:
            self._ask_about_full(outcome.full)
        if self.unsent.waiting:
            if outcome.cancelled or outcome.error or outcome.full:
                self.take_back_waiting()
            else:
                self._send_waiting()
        if self.chat_app.options.bell:
            self.app.bell()
        self.refresh_title()
        self.refresh_status()

    @work(group="full")
    async def _ask_about_full(self, full: ContextFull) -> None:
        """The conversation does not fit: what to do is the user's choice."""
        match await context_full.ask(self.app, full):
            case "shorten":
                self.begin_reply(lambda: self.live.session.regenerate(shorten=True))
            case "edit":
                self.chat_app.chat.action_edit_last()

    def action_stop(self) -> None:
        if self.reply.running:
            self.live.session.cancel()

    # Stepping back ------------------------------------------------------------------------------

    def on_composer_dismissed(self, event: Composer.Dismissed) -> None:
        event.stop()
        self.action_step_back()

    def action_step_back(self) -> None:
        """Escape: stop the reply or a download, take a waiting message back, leave an edit."""
        if self.reply.running:
            self.action_stop()
        elif self.chat_app.model.downloading:
            self.chat_app.pause_download()
        elif self.unsent.waiting:
            self.take_back_waiting()
        else:
            self.stop_editing()
        self.composer.focus()
