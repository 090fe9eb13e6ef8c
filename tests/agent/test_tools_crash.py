"""`kill -9` of the app while a command runs: nothing of it lives, and the conversation is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_engine import ScriptedEngine

from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.agent.unfinished_calls import INTERRUPTED, NOT_RUN, unfinished
from minicpm5_mac.conversations.records import StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Answer, ReplyEnd, ToolStarted
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy

PATIENCE = 60.0

# One reply with three calls: a read, a command that never ends, and one more read.
WRITER = """
import sys
from pathlib import Path
from scripted_engine import ScriptedEngine
from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Answer, ApprovalWanted, CallParsed, ReplyEnd
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy

data, workspace = map(Path, sys.argv[1:3])
script = [
    Answer("I do three things."),
    CallParsed(ToolCall("read_file", {"path": "a.txt"})),
    CallParsed(ToolCall("run_command", {"command":
        "echo half > half.txt; while :; do date +%s%N > beat; sleep 0.05; done"})),
    CallParsed(ToolCall("list_dir", {})),
    ReplyEnd("complete", "stop"),
]
session = Session(ScriptedEngine(script), ConversationStore(data), None, SessionSettings("demo"),
                  Toolbox(Policy(workspace), commands=True))
for event in session.send("go"):
    pass
"""


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def test_a_killed_app_leaves_no_process_and_a_whole_conversation(tmp_path, workspace, sandbox):
    (workspace / "a.txt").write_text("one\n")
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    app = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "data"), str(workspace)],
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        until((workspace / "beat").exists)
    finally:
        app.send_signal(signal.SIGKILL)
        app.wait()
    time.sleep(1)
    last = (workspace / "beat").read_bytes()
    time.sleep(0.5)
    assert (workspace / "beat").read_bytes() == last, "the command lives on"

    with ConversationStore(tmp_path / "data") as store:
        (conversation,) = store.list()
        engine = ScriptedEngine([Answer("I see."), ReplyEnd("complete", "stop")])
        toolbox = Toolbox(Policy(workspace))
        session = Session(engine, store, conversation.id, SessionSettings("demo"), toolbox)
        names = [call.name for call in unfinished(session.messages())]
        assert names == ["run_command", "list_dir"]
        heard = list(session.continue_reply())
        assert not [event for event in heard if isinstance(event, ToolStarted)]
        assert [(m.role, m.content) for m in session.messages()] == [
            ("user", "go"), ("assistant", "I do three things."), ("tool", "one\n"),
            ("tool", INTERRUPTED), ("tool", NOT_RUN), ("assistant", "I see."),
        ]  # fmt: skip
        assert [m.content for m in engine.requests[0].messages if m.role == "tool"] == [
            "one\n", INTERRUPTED, NOT_RUN,
        ]  # fmt: skip
        # What the command had done can be taken back.
        (turn,) = toolbox.undo.turns()
        assert {Path(change.path).name for change in turn.changes} == {"half.txt", "beat"}
        toolbox.undo.take_back(turn.id)
        assert sorted(os.listdir(workspace)) == ["a.txt"]


def reply(*names: str, finish: str = "complete") -> StoredMessage:
    calls = tuple(ToolCall(name, {}) for name in names)
    return StoredMessage(1, None, "assistant", "", tool_calls=calls, finish=finish)  # type: ignore[arg-type]


def result(name: str | None) -> StoredMessage:
    """name: the call that it answers; None for what was no valid call."""
    return StoredMessage(2, 1, "tool", "", tool_calls=(ToolCall(name, {}),) if name else ())


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ([], []),
        ([StoredMessage(1, None, "user", "hi")], []),
        ([reply()], []),
        ([reply("a", "b")], ["a", "b"]),
        ([reply("a", "b"), result("a")], ["b"]),
        ([reply("a", "b"), result("a"), result("b")], []),
        ([reply("a"), result(None)], ["a"]),
        ([reply("a"), result(None), result("a")], []),
        ([reply("a"), result("a"), reply("b")], ["b"]),
        ([reply("a"), StoredMessage(3, 1, "user", "and?")], []),
    ],
)
def test_which_calls_have_no_result(path, names):
    assert [call.name for call in unfinished(path)] == names


def test_a_message_after_the_crash_settles_the_calls_first(tmp_path, store):
    conversation = store.create("t").id
    user = store.messages.add(conversation, None, "user", "go")
    made = store.messages.begin_reply(conversation, user)
    call = ToolCall("read_file", {"path": "a"})
    end = ReplyEnd("cancelled", "cancelled")
    store.messages.finish_reply(made, "", "", (call,), end)
    engine = ScriptedEngine([Answer("Hi."), ReplyEnd("complete", "stop")])
    session = Session(engine, store, conversation, SessionSettings("demo"))
    list(session.send("hello"))
    assert [(m.role, m.content) for m in session.messages()[2:]] == [
        ("tool", NOT_RUN), ("user", "hello"), ("assistant", "Hi."),
    ]  # fmt: skip
