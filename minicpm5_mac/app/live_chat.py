"""The engine, the store and the session behind the screens; free of Textual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings, decode_settings
from minicpm5_mac.agent.toolbox import MCP_NEWS, Toolbox
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.conversations.title import UNTITLED
from minicpm5_mac.events import EngineStopped, Event, Notice


@dataclass(frozen=True)
class Opened:
    """A conversation as it is to be shown. draft: text that was never sent."""

    title: str
    messages: tuple[StoredMessage, ...]
    draft: str


class LiveChat:
    """What lives as long as the app does. Its methods may block: call them off the UI's thread.

    Nothing is opened before `open`; the engine is made at once but not started.
    """

    def __init__(self, options: AppOptions) -> None:
        self.settings = options.settings
        self.toolbox = options.toolbox
        self._options = options
        self._engine = options.make_engine(options.settings.model)
        self._store: ConversationStore | None = None
        self._session: Session | None = None
        self._draft_of: str | None = None

    @property
    def store(self) -> ConversationStore:
        assert self._store is not None, "open comes first"
        return self._store

    @property
    def session(self) -> Session:
        assert self._session is not None, "open comes first"
        return self._session

    @property
    def is_open(self) -> bool:
        return self._session is not None

    @property
    def conversation(self) -> str | None:
        return None if self._session is None else self._session.conversation

    def open(self) -> Opened:
        """Open the store and the conversation to begin with. Raises Failure."""
        if self._store is None:
            self._store = ConversationStore()
        return self.open_conversation(self._options.conversation, first=True)

    def open_conversation(self, conversation: str | None, first: bool = False) -> Opened:
        """Go to a stored conversation, or to a new one. Raises Failure for an unknown id.

        A stored one brings its settings along, all but the model: that one is loaded. `first`:
        what was given on the command line stays.
        """
        settings, title = self.settings, UNTITLED
        if conversation is not None:
            stored = self.store.get(conversation)
            title = stored.title
            kept = {"model"} | (self._options.given if first else frozenset())
            found = decode_settings(stored.settings)
            if found is not None:
                changes = {name: getattr(settings, name) for name in kept}
                settings = msgspec.structs.replace(found, **changes)
        else:
            settings = msgspec.structs.replace(self._options.settings, model=settings.model)
        self._session = Session(self._engine, self.store, conversation, settings, self.toolbox)
        self.settings = settings
        self._draft_of = conversation
        return Opened(title, self._session.messages(), self.store.draft(conversation))

    def change(self, settings: SessionSettings) -> None:
        """Other settings, from the next reply on."""
        self.settings = settings
        if self._session is not None:
            self._session.change(settings)

    def use_tools(self, toolbox: Toolbox | None) -> None:
        """Tools, others, or none, from the next message on, also in other conversations.

        MCP servers of those that are left are ended, at once.
        """
        left, self.toolbox = self.toolbox, toolbox
        if self._session is not None:
            self._session.use_tools(toolbox)
        if left is not None and left is not toolbox:
            left.close()

    def prepare_tools(self) -> tuple[str, ...]:
        """Try the sandbox, which takes seconds where it was not tried before. Raises Failure.

        What it finds out is told by the toolbox from then on, all the time; returned is what the
        user should be told once.
        """
        if self.toolbox is None:
            return ()
        events = list(self.toolbox.prepare())
        return tuple(e.text for e in events if isinstance(e, Notice) and e.code == MCP_NEWS)

    def start(self) -> Iterator[Event]:
        """Start the model; blocks between events."""
        yield from self._engine.start()

    def start_again(self, model: str | None = None) -> Iterator[Event]:
        """End the engine and start a new one, of another model if one is named."""
        if self._session is not None:
            self._session.cancel()
        self._engine.close()
        if model is not None:
            self.settings = msgspec.structs.replace(self.settings, model=model)
        self._engine = self._options.make_engine(self.settings.model)
        if self._session is not None:
            conversation = self._session.conversation
            self._session = Session(
                self._engine, self.store, conversation, self.settings, self.toolbox
            )
        yield from self._engine.start()

    def stop_model(self) -> None:
        """End the engine; `start_again` makes another."""
        self._engine.close()

    def stopped(self) -> EngineStopped | None:
        """The model's end, where it came between replies and was not told yet."""
        return None if self._session is None or self._session.running else self._engine.stopped()

    def title(self) -> str:
        """The conversation's title as stored now."""
        conversation = self.conversation
        return UNTITLED if conversation is None else self.store.get(conversation).title

    def save_draft(self, text: str) -> None:
        """Keep unsent text with the conversation, also once a new one has got its id."""
        if self._draft_of != self.conversation:
            self.store.save_draft(self._draft_of, "")
            self._draft_of = self.conversation
        self.store.save_draft(self.conversation, text)

    def close(self) -> None:
        """End the running reply, the engine and the store; what was said stays."""
        if self._session is not None:
            self._session.cancel()
        if self.toolbox is not None:
            self.toolbox.close()
        self._engine.close()
        if self._store is not None:
            self._store.close()
