"""The chat: what its keys and slash commands do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import work
from textual.binding import Binding
from textual.dom import DOMNode

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.flows import export, settings, switching
from minicpm5_mac.app.presets import presets
from minicpm5_mac.app.reply_state import Phase
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.app.screens.tools import ToolsScreen
from minicpm5_mac.app.transcript import (
    AssistantMessage,
    CopyRequested,
    EditRequested,
    ReasoningPane,
    ToolRun,
    UserMessage,
)
from minicpm5_mac.app.transcript.assistant_message import RegenerateRequested
from minicpm5_mac.app.transcript.transcript import text_of
from minicpm5_mac.app.transcript_entries import broke_off, is_nudge
from minicpm5_mac.app.widgets.composer_panel import ComposerPanel
from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.failure import Failure


class ChatScreen(ToolsScreen):
    """One conversation, with everything that can be done to it."""

    BINDINGS: ClassVar = [
        Binding("escape", "step_back", "Stop the reply or a download; back to the composer"),
        Binding("ctrl+t", "answer_now", "Stop thinking, answer now"),
        Binding("ctrl+r", "again", "Answer again; start a stopped model"),
        Binding("ctrl+g", "continue_reply", "Let a cut reply go on"),
        Binding("f9,alt+c", "copy", "Copy the last reply"),
        Binding("ctrl+n", "new_conversation", "New conversation"),
        Binding("ctrl+o", "conversations", "Conversations: open, search, rename"),
        Binding("f2", "app.models", "Model"),
        Binding("f3", "sampling", "Sampling and thinking"),
        Binding("f5", "app.restart_model", "Start the model again"),
        Binding("left_square_bracket", "branch(-1)", "On a message: its previous version"),
        Binding("right_square_bracket", "branch(1)", "On a message: its next version"),
    ]

    def help_nodes(self) -> Sequence[tuple[str, DOMNode]]:
        """The widgets whose keys the help screen lists, in its order, and what it calls them."""
        return (
            ("Composer", self.composer),
            ("Conversation", self),
            ("Messages (tab goes there)", self.transcript),
            ("On a message of yours", UserMessage("", "")),
            ("On a reply", AssistantMessage()),
            ("On reasoning", ReasoningPane()),
            ("On a call of a tool", ToolRun()),
            ("Composer's window", self.query_one(ComposerPanel)),
        )

    # Replies ------------------------------------------------------------------------------------

    def _idle(self) -> bool:
        """Whether a reply can be asked for; says why not."""
        if self.reply.running:
            self.notify("A reply is being written: esc stops it.", severity="warning")
        elif self.chat_app.model.ready is None:
            self.notify("No model is loaded yet.", severity="warning")
        elif self.live.is_open:
            return True
        return False

    def action_answer_now(self) -> None:
        if self.reply.phase is Phase.THINKING:
            self.live.session.answer_now()
        else:
            self.notify("The model is not thinking.", timeout=2)

    def action_again(self) -> None:
        """Start a model that stopped; otherwise answer the last message again."""
        model = self.chat_app.model
        if model.stopped or model.failed is not None:
            self.chat_app.action_restart_model()
        else:
            self.action_regenerate()

    def action_regenerate(self) -> None:
        if self._idle():
            self._regenerate(None)

    def on_regenerate_requested(self, event: RegenerateRequested) -> None:
        event.stop()
        if self._idle():
            self._regenerate(int(event.message_id) if event.message_id else None)

    @work(group="reply")
    async def _regenerate(self, message: int | None) -> None:
        self.runner.prepare()
        path = _to_question(await self._stored(), message)
        if not path:
            self.runner.give_up()
            self.notify("There is no message to reply to yet.", severity="warning")
            return
        session, question = self.live.session, path[-1].id
        await self.show_messages(path)
        self.begin_reply(lambda: session.regenerate(question))

    @work(group="reply")
    async def action_continue_reply(self) -> None:
        if not self._idle():
            return
        stored = await self._stored()
        last = stored[-1] if stored else None
        goes_on = broke_off(stored)
        if last is None or (last.role == "assistant" and not last.interrupted and not goes_on):
            self.notify("The last reply is complete: there is nothing to continue.")
            return
        session = self.live.session
        if goes_on:
            await self.show_messages(stored)
            self.begin_reply(session.continue_reply, continues=True)
            return
        if last.role == "assistant":
            await self.show_messages(stored[:-1])
        self.begin_reply(session.continue_reply, last if last.role == "assistant" else None)

    async def _stored(self) -> tuple[StoredMessage, ...]:
        try:
            return await asyncio.to_thread(self.live.session.messages)
        except Failure as failure:
            self.complain(failure)
            return ()

    # Editing and branches -----------------------------------------------------------------------

    @work(group="edit")
    async def action_edit_last(self) -> None:
        """Edit the last message that the user sent."""
        await self._edit(lambda message: message.role == "user" and not is_nudge(message))

    def on_edit_requested(self, event: EditRequested) -> None:
        event.stop()
        self._edit_message(event.message_id)

    @work(group="edit")
    async def _edit_message(self, message_id: str) -> None:
        await self._edit(lambda message: str(message.id) == message_id)

    async def _edit(self, wanted: Callable[[StoredMessage], bool]) -> None:
        if self.reply.running or not self.live.is_open:
            self.notify("A reply is being written: esc stops it.", severity="warning")
            return
        found = next((m for m in reversed(await self._stored()) if wanted(m)), None)
        if found is None:
            self.notify("There is no message to edit yet.", severity="warning")
        else:
            self.start_editing(found)

    @work(group="show", exclusive=True)
    async def action_branch(self, step: int) -> None:
        """Show the version before or after this one, of the message that has the focus."""
        focused = self.transcript.focused_message
        if focused is None or self.reply.running or not self.live.is_open:
            return
        stored = {str(message.id): message for message in await self._stored()}
        message = stored.get(focused.message_id)
        if message is None or len(message.siblings) < 2:
            self.notify("This message has one version only.", timeout=2)
            return
        at = (message.siblings.index(message.id) + step) % len(message.siblings)
        try:
            await asyncio.to_thread(self.live.session.switch_branch, message.siblings[at])
        except Failure as failure:
            self.complain(failure)
            return
        await self.show_messages(await self._stored())
        for view in self.transcript.messages:
            if view.message_id == str(message.siblings[at]):
                view.focus()
        self.notify(f"Version {at + 1} of {len(message.siblings)}.", timeout=2)

    # Conversations ------------------------------------------------------------------------------

    @work(group="open", exclusive=True)
    async def action_new_conversation(self) -> None:
        await self._open(None)

    @work(group="open", exclusive=True)
    async def action_conversations(self, words: str = "") -> None:
        if not self.live.is_open:
            return
        picked = await switching.pick(self.app, self.live.store, self.live.conversation, words)
        if picked.export:
            await export.write(self.app, self.live.store, picked.export, "")
        elif picked.open or picked.current_deleted:
            await self._open(picked.open)
        else:
            self.show_title(await asyncio.to_thread(self.live.title))

    async def _open(self, conversation: str | None) -> None:
        if self.reply.running:
            self.notify("A reply is being written: esc stops it.", severity="warning")
            return
        if not self.live.is_open:
            return
        try:
            self.keep_draft_now()
            opened = await asyncio.to_thread(self.live.open_conversation, conversation)
        except Failure as failure:
            self.complain(failure)
            return
        self.composer.load("")
        await self.show_opened(opened)
        self.composer.focus()

    @work(group="name")
    async def action_rename(self, argument: str = "") -> None:
        conversation = self.live.conversation
        if conversation is None:
            self.notify("There is nothing to name yet: send a message first.", severity="warning")
            return
        title = argument or await self.app.push_screen_wait(
            Question("Rename this conversation", value=self.title_shown)
        )
        if title:
            try:
                self.show_title(
                    await asyncio.to_thread(self.live.store.rename, conversation, title)
                )
            except Failure as failure:
                self.complain(failure)

    @work(group="export")
    async def action_export(self, argument: str = "") -> None:
        conversation = self.live.conversation
        if conversation is None:
            self.notify("There is nothing to export yet.", severity="warning")
        else:
            await export.write(self.app, self.live.store, conversation, argument)

    # Settings -----------------------------------------------------------------------------------

    @work(group="settings", exclusive=True)
    async def action_think(self, argument: str = "") -> None:
        try:
            changed = await settings.choose_thinking(self.app, self.live.settings, argument)
        except Failure as failure:
            self.complain(failure)
            return
        await self._change(changed)

    @work(group="settings", exclusive=True)
    async def action_sampling(self) -> None:
        await self._change(await settings.choose_sampling(self.app, self.live.settings))

    @work(group="settings", exclusive=True)
    async def action_system_prompt(self) -> None:
        offered = presets(self.chat_app.options.presets)
        now = self.live.settings
        await self._change(await settings.choose_system_prompt(self.app, now, offered))

    async def _change(self, changed: SessionSettings | None) -> None:
        if changed is not None:
            try:
                await asyncio.to_thread(self.live.change, changed)
            except Failure as failure:
                self.complain(failure)
            self.refresh_status()

    # Copying and the window ---------------------------------------------------------------------

    def on_copy_requested(self, event: CopyRequested) -> None:
        event.stop()
        self.chat_app.copy(event.text, event.what.capitalize())

    def action_copy(self, argument: str = "") -> None:
        """Copy the last reply; its code (`code`); the conversation (`all`)."""
        reply = self.transcript.last_reply
        match argument.lower():
            case "all":
                self.chat_app.copy(text_of(self.transcript.entries()), "Conversation")
            case "code":
                blocks = reply.code_blocks() if reply is not None else []
                self.chat_app.copy("\n\n".join(code for _, code in blocks), "Code")
            case "":
                self.chat_app.copy(reply.text if reply is not None else "", "Reply")
            case other:
                self.notify(f"Copy what? Not {other!r}: code, or all.", markup=False)

    def action_expand(self) -> None:
        self.query_one(ComposerPanel).action_expand()


def _to_question(stored: Sequence[StoredMessage], message: int | None) -> tuple[StoredMessage, ...]:
    """The messages up to the user's one that `message`, or the last reply, answers."""
    ids = [found.id for found in stored]
    path = list(stored if message is None else stored[: ids.index(message) + 1])
    while path and (path[-1].role != "user" or is_nudge(path[-1])):
        path.pop()
    return tuple(path)
