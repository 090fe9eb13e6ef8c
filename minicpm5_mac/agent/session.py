"""A chat session: one engine, one stored conversation, and the replies between them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence

from minicpm5_mac.agent.announced_call import NUDGE
from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.settings import SessionSettings, encode_settings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.agent.turn import Turn
from minicpm5_mac.agent.unfinished_calls import settle, unfinished
from minicpm5_mac.conversations.records import Attachment, StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.conversations.title import title_from
from minicpm5_mac.engine.interface import Engine
from minicpm5_mac.events import Event, MessageSaved, Notice
from minicpm5_mac.failure import Failure

_SURROGATES = re.compile("[\ud800-\udfff]")


class Session:
    """Sends, regenerates, edits and continues; saves everything as it happens.

    The methods that return events block between them: run them in a worker thread. They do
    nothing before the first event is asked for. Each passes the engine's events on unchanged,
    adds MessageSaved, and ends with exactly one ReplyEnd, also when the engine raises or dies.
    They raise Failure, before any event, where nothing can be asked: nothing to send, a reply
    still running, a store that cannot be written. A Notice that is to be shown once comes once
    in a session.

    One reply at a time; `cancel`, `answer_now` and the properties are for any thread. An
    iterator that is closed, or left by an exception such as KeyboardInterrupt, cancels its
    reply, and what was said is kept.

    With a toolbox each of these is a whole turn: replies, their calls, the results, until the
    model answers or a limit ends it. ApprovalWanted stands still until `decide`, from another
    thread or between two events.
    """

    def __init__(
        self,
        engine: Engine,
        store: ConversationStore,
        conversation: str | None,
        settings: SessionSettings,
        toolbox: Toolbox | None = None,
    ) -> None:
        """conversation: the id of a stored one, or None: then the first `send` makes it.

        Raises Failure for an id that is not in the store.
        """
        self._engine = engine
        self._store = store
        self._settings = settings
        self._conversation = conversation
        self._head: int | None = None
        if conversation is not None:
            store.messages.recover()
            self._head = store.get(conversation).head
        self._toolbox = toolbox
        self._turn: Turn | None = None
        self._guard = threading.Lock()
        self._running = False
        self._cancelled = threading.Event()
        self._noticed: set[str] = set()

    @property
    def conversation(self) -> str | None:
        """The conversation's id; None as long as nothing was sent."""
        return self._conversation

    @property
    def head(self) -> int | None:
        """The id of the message that the conversation ends with, as this session shows it."""
        return self._head

    @property
    def running(self) -> bool:
        """A reply is being asked for or written."""
        return self._running

    @property
    def settings(self) -> SessionSettings:
        """What the next reply will be asked for with."""
        return self._settings

    def change(self, settings: SessionSettings) -> None:
        """Other settings, from the next reply on; they are stored with the conversation."""
        self._settings = settings
        if self._conversation is not None:
            self._store.save_settings(self._conversation, encode_settings(settings))

    @property
    def toolbox(self) -> Toolbox | None:
        """The tools of this session; None is plain chat."""
        return self._toolbox

    def use_tools(self, toolbox: Toolbox | None) -> None:
        """Tools, others, or none, from the next turn on."""
        self._toolbox = toolbox

    def messages(self) -> tuple[StoredMessage, ...]:
        """The messages from the first one to the head, with the ids of their siblings."""
        if self._conversation is None:
            return ()
        return self._store.messages.path(self._conversation, self._head)

    # Replies ------------------------------------------------------------------------------------

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> Iterator[Event]:
        """Store a user message below the head, then stream the reply to it.

        attachments: from `read_attachment`; they are kept apart from the text and reach the
        model behind it, each in a fence under its path.
        """
        with self._alone():
            text = _valid(text)
            _refuse_empty(text, attachments)
            if self._conversation is None:
                self._conversation = self._store.create(
                    title_from(text or attachments[0].path), encode_settings(self._settings)
                ).id
            yield from self._settle()
            yield self._add_user(self._head, text, tuple(attachments))
            yield from self._reply(self.messages())

    def edit(
        self, message: int, text: str, attachments: Sequence[Attachment] | None = None
    ) -> Iterator[Event]:
        """Send another version of a user message, as a branch beside it; the old one stays.

        attachments: None keeps those of the old version.
        """
        with self._alone():
            old = self._path_to(message)[-1]
            if old.role != "user":
                raise Failure("Only your own messages can be edited.")
            files = old.attachments if attachments is None else tuple(attachments)
            text = _valid(text)
            _refuse_empty(text, files)
            yield self._add_user(old.parent, text, files)
            yield from self._reply(self.messages())

    def regenerate(self, message: int | None = None, shorten: bool = False) -> Iterator[Event]:
        """Another reply beside an earlier one (default: to the last user message of all).

        message: the id of a reply or of a user message. It is also how a message gets its reply
        that got none: after a crash, or after ContextFull with `shorten=True`, which leaves old
        content out of the prompt, never out of the store.
        """
        with self._alone():
            path = self.messages() if message is None else self._path_to(message)
            while path and (path[-1].role != "user" or path[-1].content == NUDGE):
                path = path[:-1]
            if not path:
                raise Failure("There is no message to reply to yet.")
            yield from self._reply(path, shorten=shorten)

    def continue_reply(self) -> Iterator[Event]:
        """Go on with the last reply, which was cut or cancelled, in its own place.

        Where the last user message has no reply at all, it gets one. A turn with tools that was
        ended, or whose app was, goes on with the results that are there; a call without one is
        told to the model as interrupted or not run, and never run again by itself.
        """
        path = self.messages()
        if path and path[-1].role == "user":
            yield from self.regenerate()
            return
        with self._alone():
            if path and (path[-1].role == "tool" or unfinished(path)):
                yield from self._settle()
                yield from self._reply(self.messages())
                return
            if not path or not path[-1].interrupted or path[-1].tool_calls:
                raise Failure("The last reply is complete: there is nothing to continue.")
            yield from self._reply(path, continued=path[-1])

    def cancel(self) -> None:
        """End the running reply; what was said is kept. Nothing happens if none is running."""
        with self._guard:
            if not self._running:
                return
            self._cancelled.set()
        self._engine.cancel()
        if self._turn is not None:
            self._turn.cancel()

    def answer_now(self) -> None:
        """End the thinking of the running reply, so that its answer comes."""
        self._engine.answer_now()

    def decide(self, call: int, decision: Decision) -> bool:
        """The user's answer to ApprovalWanted of that id; False where it does not wait for one."""
        return self._turn is not None and self._turn.desk.decide(call, decision)

    def cancel_call(self) -> None:
        """End the running command alone: the model is told, and the turn goes on."""
        if self._turn is not None:
            self._turn.cancel_call()

    # Branches -----------------------------------------------------------------------------------

    def switch_branch(self, message: int) -> None:
        """Show the branch that a message is on, down to where the user was last in it."""
        with self._alone():
            if self._conversation is None:
                raise Failure("There are no branches yet.")
            leaf = self._store.messages.leaf(self._conversation, message)
            self._store.messages.show(self._conversation, leaf)
            self._head = leaf

    # Inside -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self._guard:
            if self._running:
                raise Failure("A reply is still being written.", "Stop it first, or wait.")
            self._running = True
            self._cancelled.clear()
        try:
            yield
        finally:
            self._running = False

    def _path_to(self, message: int) -> tuple[StoredMessage, ...]:
        if self._conversation is None:
            raise Failure("There are no messages yet.")
        return self._store.messages.path(self._conversation, message)

    def _settle(self) -> Iterator[Event]:
        """Give calls that were never finished their results."""
        assert self._conversation is not None
        for event in settle(self._store, self._conversation, self.messages()):
            self._head = event.message
            yield event

    def _add_user(
        self, parent: int | None, text: str, attachments: tuple[Attachment, ...]
    ) -> MessageSaved:
        assert self._conversation is not None
        message = self._store.messages.add(self._conversation, parent, "user", text, attachments)
        self._head = message
        versions = self._store.messages.siblings(self._conversation, message)
        return MessageSaved(self._conversation, message, "user", parent, versions)

    def _reply(
        self,
        path: tuple[StoredMessage, ...],
        shorten: bool = False,
        continued: StoredMessage | None = None,
    ) -> Iterator[Event]:
        assert self._conversation is not None
        turn = Turn(
            self._engine,
            self._store,
            self._conversation,
            self._settings,
            self._cancelled,
            self._toolbox,
        )
        self._turn = turn
        try:
            for event in turn.run(path, shorten=shorten, continued=continued):
                self._head = turn.head or self._head
                if isinstance(event, Notice) and event.once:
                    if event.code in self._noticed:
                        continue
                    self._noticed.add(event.code)
                yield event
        finally:
            self._turn = None
            self._head = turn.head or self._head


def _refuse_empty(text: str, attachments: Sequence[Attachment]) -> None:
    if not text.strip() and not attachments:
        raise Failure("There is nothing to send.")


def _valid(text: str) -> str:
    """Text with U+FFFD for lone surrogates: what Python makes of bytes that are no UTF-8."""
    return _SURROGATES.sub("\ufffd", text)
