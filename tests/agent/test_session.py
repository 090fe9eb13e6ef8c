"""The session: what is asked of the engine, what is saved and when, and how a reply ends."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scripted_engine import ScriptedEngine

from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings, decode_settings
from minicpm5_mac.conversations.records import Attachment, StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import (
    Answer,
    CallParsed,
    CallStarted,
    ContextFull,
    Event,
    MessageSaved,
    Notice,
    Progress,
    PromptProgress,
    Reasoning,
    ReplyEnd,
    ThinkingClosed,
    Usage,
)
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import Message, ToolCall, TurnIds
from minicpm5_mac.request import Sampling

DONE = ReplyEnd("complete", "stop", Usage(generated_tokens=2), TurnIds("f", True, (1, 2), (3, 4)))
CUT = ReplyEnd("truncated", "max_tokens", Usage(thinking_tokens=5))
SETTINGS = SessionSettings("demo")


def session_of(
    store: ConversationStore, *scripts, settings: SessionSettings = SETTINGS
) -> tuple[Session, ScriptedEngine]:
    engine = ScriptedEngine(*scripts)
    return Session(engine, store, None, settings), engine


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages()]


def answering(*texts: str, end: ReplyEnd = DONE) -> list[list[Event]]:
    return [[Answer(text), end] for text in texts]


# What is asked --------------------------------------------------------------------------------


def test_the_request_says_what_the_settings_say(store: ConversationStore):
    settings = SessionSettings(
        model="demo",
        system_prompt="Be brief.",
        thinking=64,
        sampling=Sampling(temperature=0.5, seed=3),
        max_tokens=100,
        keep_reasoning=False,
        when_full="shorten",
    )
    session, engine = session_of(store, *answering("a"), settings=settings)
    list(session.send("hello"))
    (request,) = engine.requests
    assert request.messages == (Message("system", "Be brief."), Message("user", "hello"))
    assert request.sampling == settings.sampling
    assert (request.thinking, request.max_tokens) == (64, 100)
    assert (request.keep_reasoning, request.when_full) == (False, "shorten")
    assert not request.continue_last


def test_replies_bring_the_ids_that_were_recorded_with_them(store: ConversationStore):
    follow = ReplyEnd("complete", "stop", ids=TurnIds("f", False, (5,), (6,)))
    session, engine = session_of(store, [Answer("a"), DONE], [Answer("b"), follow], [DONE])
    for text in ("one", "two", "three"):
        list(session.send(text))
    assert [m.ids for m in engine.requests[-1].messages] == [None, DONE.ids, None, follow.ids, None]


def test_ids_that_a_later_whole_record_covers_stay_at_home(store: ConversationStore):
    session, engine = session_of(store, *answering("a", "b", "c"))
    for text in ("one", "two", "three"):
        list(session.send(text))
    assert [m.ids for m in engine.requests[-1].messages] == [None, None, None, DONE.ids, None]


def test_settings_can_change_in_mid_conversation(store: ConversationStore):
    session, engine = session_of(store, *answering("a", "b"))
    list(session.send("one"))
    changed = SessionSettings("demo", system_prompt="New.", thinking=0)
    session.change(changed)
    list(session.send("two"))
    assert engine.requests[1].messages[0] == Message("system", "New.")
    assert engine.requests[1].thinking == 0
    assert decode_settings(store.get(session.conversation).settings) == changed


def test_attached_files_reach_the_model_in_a_fence_and_stay_apart_in_the_store(
    store: ConversationStore,
):
    session, engine = session_of(store, *answering("a"))
    files = [Attachment("src/a.py", "x = 1\n")]
    list(session.send("Look:", files))
    (message,) = engine.requests[0].messages
    assert message.content == "Look:\n\nFile src/a.py:\n```\nx = 1\n```"
    stored = session.messages()[0]
    assert (stored.content, stored.attachments) == ("Look:", tuple(files))


# What is saved, and when ----------------------------------------------------------------------


def test_nothing_is_stored_before_the_first_message(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    assert session.messages() == ()
    assert session.conversation is None
    iterator = session.send("  Hello\nthere  ")
    assert store.list() == ()
    list(iterator)
    (stored,) = store.list()
    assert (stored.id, stored.title) == (session.conversation, "Hello")
    assert decode_settings(stored.settings) == SETTINGS


def test_the_user_s_message_is_on_disk_before_the_engine_is_asked(
    store: ConversationStore,
):
    def look(engine: ScriptedEngine) -> Iterator[Event]:
        with sqlite3.connect(store.path) as other:
            seen.extend(other.execute("SELECT role, content FROM messages").fetchall())
        other.close()
        yield DONE

    seen: list = []
    session, _ = session_of(store, look)
    list(session.send("precious"))
    assert seen == [("user", "precious")]


def test_the_engine_s_events_pass_unchanged_and_ids_are_told_first(store: ConversationStore):
    call = ToolCall("read_file", {"path": "a"})
    script = [
        PromptProgress(0, 1, 2, 3.0),
        Reasoning("think"),
        ThinkingClosed("model", 1, 0),
        Answer("ans"),
        Progress(Usage(generated_tokens=1)),
        Answer("wer"),
        CallStarted("read_file"),
        CallParsed(call),
        DONE,
    ]
    session, _ = session_of(store, script)
    events = list(session.send("hi"))
    user, reply = [e for e in events if isinstance(e, MessageSaved)]
    assert (
        events[0]
        == user
        == MessageSaved(session.conversation, user.message, "user", None, (user.message,))
    )
    assert events[2] == reply
    assert reply == MessageSaved(
        session.conversation, reply.message, "assistant", user.message, (reply.message,)
    )
    assert [e for e in events if not isinstance(e, MessageSaved)] == script
    stored = session.messages()[-1]
    assert stored.id == reply.message == session.head
    assert (stored.content, stored.reasoning, stored.tool_calls) == ("answer", "think", (call,))
    assert (stored.finish, stored.cause, stored.usage) == ("complete", "stop", DONE.usage)
    assert stored.ids == DONE.ids


def test_text_is_on_disk_while_the_model_is_still_writing(store: ConversationStore):
    def write(engine: ScriptedEngine) -> Iterator[Event]:
        yield Answer("begun")
        with ConversationStore(store.path.parent) as other:
            for _ in range(1000):
                if stored := texts_in(other, "streaming"):
                    seen.append(stored)
                    break
                threading.Event().wait(0.02)
        yield DONE

    seen: list = []
    session, _ = session_of(store, write)
    list(session.send("hi"))
    assert seen == [["begun"]]


def texts_in(store: ConversationStore, state: str) -> list[str]:
    (conversation,) = store.list()
    stored = store.messages.all(conversation.id)
    return [m.content for m in stored if m.state == state and m.content]


def test_a_reply_that_failed_before_its_first_word_leaves_no_message(store: ConversationStore):
    session, engine = session_of(
        store, [ContextFull(9, 8, True), ReplyEnd("failed", "context_full")], *answering("a")
    )
    events = list(session.send("hi"))
    assert events[1:] == [ContextFull(9, 8, True), ReplyEnd("failed", "context_full")]
    assert said(session) == [("user", "hi")]
    list(session.regenerate(shorten=True))
    assert engine.requests[1].when_full == "shorten"
    assert engine.requests[1].messages == engine.requests[0].messages
    assert said(session) == [("user", "hi"), ("assistant", "a")]


def test_a_reply_of_no_words_is_still_a_reply(store: ConversationStore):
    session, _ = session_of(store, [DONE])
    events = list(session.send("hi"))
    assert [type(e) for e in events] == [MessageSaved, MessageSaved, ReplyEnd]
    assert said(session) == [("user", "hi"), ("assistant", "")]


@pytest.mark.parametrize(("text", "files"), [("", []), (" \n\t", [])])
def test_nothing_to_send_is_a_failure_and_stores_nothing(store, text, files):
    session, engine = session_of(store)
    with pytest.raises(Failure, match="nothing to send"):
        list(session.send(text, files))
    assert store.list() == ()
    assert engine.requests == []


def test_a_file_alone_can_be_sent(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    list(session.send("", [Attachment("notes.txt", "text")]))
    assert store.get(session.conversation).title == "notes.txt"


def test_bytes_that_are_no_text_become_visible_not_an_error(store: ConversationStore):
    session, engine = session_of(store, *answering("a"))
    list(session.send("bad \udcff byte"))
    assert engine.requests[0].messages[0].content == "bad \ufffd byte"
    assert said(session)[0] == ("user", "bad \ufffd byte")


def test_a_notice_for_once_comes_once_in_a_session(store: ConversationStore):
    once, often = Notice("no_thinking", "x", once=True), Notice("loop", "y")
    session, _ = session_of(store, [once, often, DONE], [once, often, DONE])
    shown = [e for _ in range(2) for e in session.send("hi") if isinstance(e, Notice)]
    assert shown == [once, often, often]


# Branches -------------------------------------------------------------------------------------


def test_an_edit_resends_as_a_branch_and_loses_nothing(store: ConversationStore):
    session, engine = session_of(store, *answering("a1", "a2", "b1"))
    list(session.send("one", [Attachment("f", "x")]))
    list(session.send("two"))
    first = session.messages()[0].id
    list(session.edit(first, "one, better"))
    assert said(session) == [("user", "one, better"), ("assistant", "b1")]
    assert session.messages()[0].attachments == (Attachment("f", "x"),)
    assert [m.content for m in engine.requests[-1].messages] == [
        "one, better\n\nFile f:\n```\nx\n```"
    ]
    session.switch_branch(first)
    assert said(session) == [
        ("user", "one"), ("assistant", "a1"), ("user", "two"), ("assistant", "a2"),
    ]  # fmt: skip


def test_only_a_user_s_message_can_be_edited(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    list(session.send("one"))
    with pytest.raises(Failure, match="your own"):
        list(session.edit(session.messages()[1].id, "x"))
    assert said(session) == [("user", "one"), ("assistant", "a")]


def test_regenerating_makes_a_sibling(store: ConversationStore):
    session, engine = session_of(store, *answering("a1", "a2"))
    list(session.send("one"))
    old = session.head
    list(session.regenerate())
    assert said(session) == [("user", "one"), ("assistant", "a2")]
    assert session.messages()[1].siblings == (old, session.head)
    assert engine.requests[0] == engine.requests[1]


def test_regenerating_an_earlier_reply_keeps_what_came_after_it(store: ConversationStore):
    session, engine = session_of(store, *answering("a1", "a2", "a1 again"))
    list(session.send("one"))
    first_reply = session.head
    list(session.send("two"))
    end = session.head
    list(session.regenerate(first_reply))
    assert said(session) == [("user", "one"), ("assistant", "a1 again")]
    assert [m.content for m in engine.requests[-1].messages] == ["one"]
    session.switch_branch(first_reply)
    assert session.head == end


def test_a_regeneration_that_fails_leaves_the_old_reply_shown(store: ConversationStore):
    session, _ = session_of(store, *answering("a1"), [ReplyEnd("failed", "error")])
    list(session.send("one"))
    list(session.regenerate())
    assert said(session) == [("user", "one"), ("assistant", "a1")]
    assert store.get(session.conversation).head == session.head


def test_there_is_nothing_to_regenerate_at_first(store: ConversationStore):
    session, _ = session_of(store)
    with pytest.raises(Failure, match="no message to reply to"):
        list(session.regenerate())


# Going on -------------------------------------------------------------------------------------


def test_a_cut_reply_goes_on_in_its_own_place(store: ConversationStore):
    session, engine = session_of(
        store, [Reasoning("th"), Answer("half "), CUT], [Answer("whole"), DONE]
    )
    list(session.send("one"))
    reply = session.head
    events = list(session.continue_reply())
    assert events[0] == MessageSaved(
        session.conversation, reply, "assistant", session.messages()[0].id, (reply,)
    )
    request = engine.requests[1]
    assert request.continue_last
    assert request.thinking_spent == 5
    assert [(m.role, m.content, m.reasoning) for m in request.messages] == [
        ("user", "one", ""), ("assistant", "half ", "th"),
    ]  # fmt: skip
    (_, stored) = session.messages()
    assert (stored.id, stored.content, stored.reasoning) == (reply, "half whole", "th")
    assert (stored.finish, stored.ids) == ("complete", DONE.ids)


def test_going_on_that_fails_at_once_changes_nothing(store: ConversationStore):
    session, _ = session_of(store, [Answer("half"), CUT], [ReplyEnd("failed", "error")])
    list(session.send("one"))
    before = session.messages()
    list(session.continue_reply())
    assert session.messages() == before


def test_a_complete_reply_cannot_be_continued(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    with pytest.raises(Failure, match="nothing to continue"):
        list(session.continue_reply())
    list(session.send("one"))
    with pytest.raises(Failure, match="nothing to continue"):
        list(session.continue_reply())


def test_a_message_without_reply_gets_one_when_it_is_to_go_on(store: ConversationStore):
    session, _ = session_of(store, [ReplyEnd("failed", "error")], *answering("a"))
    list(session.send("one"))
    list(session.continue_reply())
    assert said(session) == [("user", "one"), ("assistant", "a")]


def test_a_stored_conversation_goes_on_in_another_session(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    list(session.send("one"))
    engine = ScriptedEngine(*answering("b"))
    again = Session(engine, store, session.conversation, SETTINGS)
    assert again.messages() == session.messages()
    list(again.send("two"))
    assert [m.content for m in engine.requests[0].messages] == ["one", "a", "two"]


def test_two_sessions_on_one_conversation_branch_and_lose_nothing(store: ConversationStore):
    session, _ = session_of(store, *answering("a", "from first"))
    list(session.send("one"))
    with ConversationStore(store.path.parent) as other_store:
        other = Session(
            ScriptedEngine(*answering("from second")), other_store, session.conversation, SETTINGS
        )
        list(session.send("first"))
        list(other.send("second"))
        assert [text for _, text in said(other)] == ["one", "a", "second", "from second"]
    assert [text for _, text in said(session)] == ["one", "a", "first", "from first"]


def test_an_unknown_conversation_is_a_failure(store: ConversationStore):
    with pytest.raises(Failure, match="no conversation"):
        Session(ScriptedEngine(), store, "nope", SETTINGS)


# Ends -----------------------------------------------------------------------------------------


def raising(engine: ScriptedEngine) -> Iterator[Event]:
    yield Answer("half")
    raise OSError("the pipe broke")


def silent(engine: ScriptedEngine) -> Iterator[Event]:
    yield Answer("half")


@pytest.mark.parametrize(("script", "word"), [(raising, "the pipe broke"), (silent, "without")])
def test_an_engine_that_breaks_still_ends_the_reply(store: ConversationStore, script, word):
    session, _ = session_of(store, script, *answering("b"))
    *_, end = list(session.send("one"))
    assert isinstance(end, ReplyEnd)
    assert (end.finish, end.cause) == ("failed", "error")
    assert word in end.detail
    stored = session.messages()[-1]
    assert (stored.content, stored.finish, stored.state) == ("half", "failed", "done")
    list(session.send("two"))
    assert said(session)[-1] == ("assistant", "b")


@pytest.mark.parametrize("script", [raising, silent])
def test_an_engine_that_is_ended_after_the_cancel_makes_no_failure_of_it(
    store: ConversationStore, script, monkeypatch
):
    session, engine = session_of(store, script)
    monkeypatch.setattr(engine, "cancel", lambda: None)  # it is gone before it can listen
    for event in session.send("one"):
        if event == Answer("half"):
            session.cancel()
    assert event == ReplyEnd("cancelled", "cancelled")
    stored = session.messages()[-1]
    assert (stored.content, stored.finish, stored.cause) == ("half", "cancelled", "cancelled")


def test_an_engine_that_cannot_even_begin_ends_the_reply(store: ConversationStore):
    session, engine = session_of(store)  # no script: reply() raises
    *_, end = list(session.send("one"))
    assert isinstance(end, ReplyEnd)
    assert end.finish == "failed"
    assert said(session) == [("user", "one")]
    assert len(engine.requests) == 1


def test_exactly_one_end_and_nothing_after_it(store: ConversationStore):
    session, _ = session_of(store, [Answer("a"), DONE, Answer("late"), CUT])
    events = list(session.send("one"))
    assert [e for e in events if isinstance(e, ReplyEnd)] == [DONE]
    assert events[-1] == DONE


def test_cancel_keeps_what_was_said(store: ConversationStore):
    session, _ = session_of(store, [Answer("a"), Answer("b"), Answer("c"), DONE])
    events = []
    for event in session.send("one"):
        events.append(event)
        if event == Answer("b"):
            session.cancel()
    assert events[-1] == ReplyEnd("cancelled", "cancelled")
    assert session.messages()[-1].content == "ab"
    assert session.messages()[-1].interrupted


def test_a_cancel_that_comes_before_the_engine_listens_is_not_lost(store: ConversationStore):
    session, engine = session_of(store, [Answer("a"), DONE])
    events = session.send("one")
    next(events)  # the user's message is saved, the engine was not asked yet
    session.cancel()
    assert list(events) == [ReplyEnd("cancelled", "cancelled")]
    assert engine.requests == []
    assert said(session) == [("user", "one")]


def test_a_cancel_without_a_reply_does_not_hit_the_next_one(store: ConversationStore):
    session, _ = session_of(store, *answering("a"))
    session.cancel()
    assert list(session.send("one"))[-1] == DONE


def test_answer_now_reaches_the_engine(store: ConversationStore):
    session, engine = session_of(store, [Reasoning("a"), DONE])
    for event in session.send("one"):
        if isinstance(event, Reasoning):
            session.answer_now()
    assert engine.answers_wanted == 1


def test_a_second_reply_at_the_same_time_is_refused(store: ConversationStore):
    session, _ = session_of(store, *answering("a", "b"))
    events = session.send("one")
    next(events)
    assert session.running
    for call in (lambda: list(session.send("two")), lambda: session.switch_branch(1)):
        with pytest.raises(Failure, match="still being written"):
            call()
    list(events)
    assert not session.running
    list(session.send("two"))
    assert len(session.messages()) == 4


def test_an_iterator_that_is_left_early_stops_the_engine_and_keeps_the_text(
    store: ConversationStore,
):
    session, engine = session_of(store, [Answer("a"), Answer("b"), Answer("c"), DONE])
    events = session.send("one")
    while next(events) != Answer("a"):
        pass
    events.close()
    assert engine.cancelled.is_set()
    stored = session.messages()[-1]
    assert (stored.content, stored.finish, stored.state) == ("a", "cancelled", "done")
    assert not session.running


def test_an_interrupt_in_the_middle_keeps_the_text(store: ConversationStore):
    def interrupted(engine: ScriptedEngine) -> Iterator[Event]:
        yield Answer("a")
        raise KeyboardInterrupt

    session, _ = session_of(store, interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(session.send("one"))
    stored = session.messages()[-1]
    assert (stored.content, stored.finish, stored.state) == ("a", "cancelled", "done")


def test_a_store_that_fails_in_mid_reply_costs_the_record_not_the_reply(
    store: ConversationStore,
):
    def deleting(engine: ScriptedEngine) -> Iterator[Event]:
        yield Answer("a")
        store.delete(store.list()[0].id)
        yield Answer("b")
        yield DONE

    session, _ = session_of(store, deleting)
    events = list(session.send("one"))
    assert [e for e in events if isinstance(e, Answer)] == [Answer("a"), Answer("b")]
    assert [e.code for e in events if isinstance(e, Notice)] == ["not_saved"]
    assert events[-1] == DONE


def test_a_reply_can_be_read_in_another_thread_than_the_store_was_opened_in(
    store: ConversationStore,
):
    session, _ = session_of(store, *answering("a"))
    events: list[Event] = []
    worker = threading.Thread(target=lambda: events.extend(session.send("one")))
    worker.start()
    worker.join()
    assert events[-1] == DONE
    assert said(session) == [("user", "one"), ("assistant", "a")]


# Any order of it all --------------------------------------------------------------------------


class Talking(RuleBasedStateMachine):
    """Any order of sending, editing, regenerating, going on, cancelling, switching, reopening.

    Every message that was ever stored stays as it was; only a reply that goes on grows.
    """

    ends = st.sampled_from([DONE, CUT, ReplyEnd("failed", "error")])
    replies = st.tuples(st.text(max_size=5), ends)
    number = st.integers(0, 10**6)

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = ConversationStore(Path(self.folder.name))
        self.engine = ScriptedEngine()
        self.session = Session(self.engine, self.store, None, SETTINGS)
        self.known: dict[int, StoredMessage] = {}

    def run(self, events: Iterator[Event], reply: tuple[str, ReplyEnd], stop: bool = False):
        text, end = reply
        self.engine.scripts = [[*(Answer(c) for c in text), end]]
        shown: list[Event] = []
        try:
            for event in events:
                shown.append(event)
                if stop and isinstance(event, Answer):
                    self.session.cancel()
        except Failure:
            assert shown == []
            return
        assert [e for e in shown if isinstance(e, ReplyEnd)] == shown[-1:]
        saved = [e.message for e in shown if isinstance(e, MessageSaved)]
        if saved:
            assert self.session.head == saved[-1]

    def any_message(self, number: int) -> int | None:
        return sorted(self.known)[number % len(self.known)] if self.known else None

    @rule(text=st.text(max_size=5), reply=replies, stop=st.booleans())
    def send(self, text: str, reply: tuple[str, ReplyEnd], stop: bool):
        self.run(self.session.send(text), reply, stop)

    @rule(number=number, text=st.text(max_size=5), reply=replies)
    def edit(self, number: int, text: str, reply: tuple[str, ReplyEnd]):
        if (message := self.any_message(number)) is not None:
            self.run(self.session.edit(message, text), reply)

    @rule(number=number, last=st.booleans(), reply=replies, stop=st.booleans())
    def regenerate(self, number: int, last: bool, reply: tuple[str, ReplyEnd], stop: bool):
        message = None if last else self.any_message(number)
        self.run(self.session.regenerate(message), reply, stop)

    @rule(reply=replies)
    def go_on(self, reply: tuple[str, ReplyEnd]):
        head = self.session.messages()[-1:]
        if head and head[0].interrupted:
            self.known[head[0].id] = msgspec.structs.replace(head[0], content="")
        self.run(self.session.continue_reply(), reply)

    @rule(number=number)
    def switch(self, number: int):
        if (message := self.any_message(number)) is not None:
            self.session.switch_branch(message)
            assert message in {m.id for m in self.session.messages()}

    @rule()
    def open_again(self):
        conversation, head = self.session.conversation, self.session.head
        self.store.close()
        self.store = ConversationStore(Path(self.folder.name))
        self.session = Session(self.engine, self.store, conversation, SETTINGS)
        assert self.session.head == head

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "session") or self.session.conversation is None:
            return
        stored = {m.id: m for m in self.store.messages.all(self.session.conversation)}
        for message, before in self.known.items():
            now = stored[message]
            assert (now.parent, now.role) == (before.parent, before.role)
            assert now.content.startswith(before.content)
            if before.content:
                assert now.content == before.content
        self.known = stored
        assert all(m.state == "done" for m in stored.values())

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestTalking = Talking.TestCase
TestTalking.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
