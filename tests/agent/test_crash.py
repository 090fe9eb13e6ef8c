"""`kill -9` in the middle of a reply: a real process, and what its store holds afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.conversations.records import CRASHED, StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Answer, ReplyEnd

PATIENCE = 60.0
"""Seconds until a process that does not do its work counts as broken."""

# Streams the numbers from 0 on; with `stall`, falls silent after the first twenty.
WRITER = """
import itertools, sys, time
from pathlib import Path
from scripted_engine import ScriptedEngine
from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Answer, Reasoning

def count(engine):
    yield Reasoning("thinking")
    for number in itertools.count():
        yield Answer(f"{number} ")
        time.sleep(0.005)
        while sys.argv[2] == "stall" and number == 19:
            time.sleep(1)

store = ConversationStore(Path(sys.argv[1]))
session = Session(ScriptedEngine(count), store, None, SessionSettings("demo"))
for event in session.send("count!"):
    pass
"""


def start_writer(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), kind], env={**os.environ, "PYTHONPATH": path}
    )


def wait_for(store: ConversationStore, enough: Callable[[str], bool]) -> StoredMessage:
    """The reply as stored, once its text is enough."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for conversation in store.list():
            for message in store.messages.all(conversation.id):
                if message.role == "assistant" and enough(message.content):
                    return message
        time.sleep(0.02)
    raise AssertionError("the text never reached the store")


@pytest.mark.parametrize("kind", ["run", "stall"])
def test_what_was_stored_before_the_kill_is_there_after_it(tmp_path: Path, kind: str):
    writer = start_writer(tmp_path, kind)
    try:
        with ConversationStore(tmp_path) as watching:
            # With a stall nothing follows that could push the text out: it goes by itself.
            seen = wait_for(watching, lambda text: text.endswith("19 ") or "60 " in text)
            assert seen.state == "streaming"
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    with ConversationStore(tmp_path) as store:
        (conversation,) = store.list()
        user, reply = store.messages.path(conversation.id, conversation.head)
        assert (user.role, user.content) == ("user", "count!")
        assert (reply.state, reply.finish, reply.cause) == ("done", "cancelled", CRASHED)
        assert reply.reasoning == "thinking"
        assert reply.content.startswith(seen.content)
        numbers = reply.content.split()
        assert numbers == [str(number) for number in range(len(numbers))]
        assert not list((tmp_path / "writers").iterdir())


def test_a_reply_that_lives_is_not_taken_for_a_dead_one(tmp_path: Path):
    writer = start_writer(tmp_path, "run")
    try:
        with ConversationStore(tmp_path) as store:
            wait_for(store, bool)
        for _ in range(3):
            with ConversationStore(tmp_path) as store:
                (conversation,) = store.list()
                before = store.messages.path(conversation.id, conversation.head)[-1]
                assert before.state == "streaming"
                wait_for(store, lambda text, old=before.content: len(text) > len(old))
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()


def test_after_the_crash_the_reply_can_go_on(tmp_path: Path):
    from scripted_engine import ScriptedEngine

    writer = start_writer(tmp_path, "stall")
    with ConversationStore(tmp_path) as watching:
        wait_for(watching, lambda text: text.endswith("19 "))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        # The app that was open all the time sees it when it opens the conversation.
        (conversation,) = watching.list()
        engine = ScriptedEngine([Answer("and so on"), ReplyEnd("complete", "stop")])
        session = Session(engine, watching, conversation.id, SessionSettings("demo"))
        assert session.messages()[-1].cause == CRASHED
        list(session.continue_reply())
        assert session.messages()[-1].content.endswith("18 19 and so on")
        assert engine.requests[0].messages[-1].ids is None
