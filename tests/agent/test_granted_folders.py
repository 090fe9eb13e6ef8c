"""Folders that the user grants in mid-session: nothing is reached before, only they after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripted_engine import ScriptedEngine

from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Answer, ApprovalWanted, CallParsed, Event, ReplyEnd, ToolFinished
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy


@pytest.fixture
def further(tmp_path: Path) -> Path:
    folder = tmp_path / "further"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


def outcomes(session: Session, text: str) -> list[str]:
    heard = []
    for event in session.send(text):
        if isinstance(event, ApprovalWanted):
            session.decide(event.id, Decision(True))
        heard.append(event)
    return [event.outcome for event in heard if isinstance(event, ToolFinished)]


def test_read_and_write_come_one_after_the_other_and_can_be_taken_back(
    store: ConversationStore, workspace: Path, sandbox: None, further: Path
):
    path = str(further / "a.txt")
    script: list[Event] = [
        CallParsed(ToolCall("read_file", {"path": path})),
        CallParsed(ToolCall("run_command", {"command": f"cat {path}"})),
        CallParsed(ToolCall("edit_file", {"path": path, "old": "one", "new": "two"})),
        ReplyEnd("complete", "stop"),
    ]
    done: list[Event] = [Answer("Done."), ReplyEnd("complete", "stop")]
    toolbox = Toolbox(Policy(workspace))
    engine = ScriptedEngine(*[script, done] * 3)
    session = Session(engine, store, None, SessionSettings("demo"), toolbox)

    assert outcomes(session, "before") == ["error", "error", "error"]
    toolbox.grant(further)
    assert outcomes(session, "read") == ["ok", "ok", "error"]
    assert (further / "a.txt").read_text() == "one\n"
    toolbox.grant(further, writable=True)
    assert outcomes(session, "write") == ["ok", "ok", "ok"]
    assert (further / "a.txt").read_text() == "two\n"
    (turn,) = toolbox.undo.turns()
    toolbox.undo.take_back(turn.id)
    assert (further / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("folder", ["/", "~", "/proc", "nowhere"])
@pytest.mark.parametrize("writable", [False, True])
def test_what_is_too_much_or_missing_is_refused_and_changes_nothing(
    workspace: Path, sandbox: None, folder: str, writable: bool, tmp_path: Path
):
    toolbox = Toolbox(Policy(workspace))
    before = toolbox.policy
    with pytest.raises(Failure):
        toolbox.grant(tmp_path / os.path.expanduser(folder), writable=writable)
    assert toolbox.policy == before


def test_a_sandbox_that_does_not_hold_with_it_is_not_widened(
    workspace: Path, sandbox: None, further: Path, monkeypatch: pytest.MonkeyPatch
):
    toolbox = Toolbox(Policy(workspace))
    before = toolbox.policy
    monkeypatch.setattr("minicpm5_mac.sandbox.linux.BWRAP_PATH", "/nowhere")
    with pytest.raises(Failure, match="is not granted"):
        toolbox.grant(further)
    assert toolbox.policy == before
