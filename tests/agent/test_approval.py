"""Who may run what: the mode, the rules, and the user's word. Deny wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicpm5_mac.agent.approval import Approvals, Decision, Rule, rule_for
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall

READ = ToolCall("read_file", {"path": "a"})
EDIT = ToolCall("edit_file", {"path": "a", "old": "x", "new": "y"})
MAKE = ToolCall("run_command", {"command": "make"})
OWN = ToolCall("add", {"a": 1})
KINDS = {"read_file": "read", "edit_file": "write", "run_command": "command", "add": "own"}


def judged(approvals: Approvals, call: ToolCall) -> str:
    found = approvals.judge(call, KINDS[call.name])
    if found.verdict in ("denied", "refused"):
        assert found.words
        return "no"
    return found.by if found.verdict == "run" else "ask"


@pytest.mark.parametrize(
    ("mode", "commands", "read", "edit", "command", "own"),
    [
        ("ask", None, "mode", "ask", "ask", "ask"),
        ("accept-edits", None, "mode", "mode", "ask", "ask"),
        ("read-only", None, "mode", "no", "no", "no"),
        # For scripts nobody is asked.
        ("ask", False, "mode", "no", "no", "no"),
        ("accept-edits", False, "mode", "mode", "no", "no"),
        ("ask", True, "mode", "mode", "mode", "mode"),
        ("read-only", True, "mode", "no", "no", "no"),
    ],
)
def test_what_each_mode_lets_run(tmp_path, mode, commands, read, edit, command, own):
    approvals = Approvals(tmp_path, mode, commands)
    seen = [judged(approvals, call) for call in (READ, EDIT, MAKE, OWN)]
    assert seen == [read, edit, command, own]


def test_the_mode_can_be_changed_at_any_time(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.mode = "read-only"
    assert judged(approvals, MAKE) == "no"
    approvals.mode = "ask"
    assert judged(approvals, MAKE) == "ask"


def test_a_program_is_remembered_by_its_exact_text(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.remember(MAKE, Decision(True, "session"))
    assert judged(approvals, MAKE) == "rule"
    for command in ("make; rm -rf .", "make ", " make", "make all", "mak"):
        assert judged(approvals, ToolCall("run_command", {"command": command})) == "ask"


def test_an_edit_is_remembered_for_the_tool(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.remember(EDIT, Decision(True, "session"))
    other = ToolCall("edit_file", {"path": "b", "old": "1", "new": "2"})
    assert judged(approvals, other) == "rule"
    assert judged(approvals, ToolCall("run_command", {"command": "edit_file"})) == "ask"


def test_once_is_not_remembered(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.remember(MAKE, Decision(True, "once"))
    assert approvals.rules == ()


@pytest.mark.parametrize("order", [(True, False), (False, True)])
@pytest.mark.parametrize("scopes", [("session", "folder"), ("folder", "session")])
def test_deny_wins_whatever_came_first(tmp_path, order, scopes):
    approvals = Approvals(tmp_path, "accept-edits")
    for allow, scope in zip(order, scopes, strict=True):
        approvals.remember(EDIT, Decision(allow, scope))
    assert judged(approvals, EDIT) == "no"


def test_a_denied_tool_does_not_even_read(tmp_path):
    approvals = Approvals(tmp_path)
    approvals.remember(READ, Decision(False, "session"))
    assert judged(approvals, READ) == "no"


def test_rules_for_a_folder_outlive_the_session_and_hold_there_alone(tmp_path, own_home):
    here, there = tmp_path / "here", tmp_path / "there"
    Approvals(here).remember(MAKE, Decision(True, "folder"))
    Approvals(here).remember(EDIT, Decision(False, "folder"))
    assert judged(Approvals(here), MAKE) == "rule"
    assert judged(Approvals(here), EDIT) == "no"
    assert judged(Approvals(there), MAKE) == "ask"
    stored = own_home / "data/approvals.json"
    assert "make" in stored.read_text()
    assert stored.stat().st_mode & 0o077 == 0
    again = Approvals(here)
    for rule in again.rules:
        again.forget(rule)
    assert judged(Approvals(here), EDIT) == "ask"


def test_two_sessions_in_a_folder_see_each_other_s_rules_and_lose_none(tmp_path):
    one, other = Approvals(tmp_path), Approvals(tmp_path)
    one.remember(EDIT, Decision(False, "folder"))
    other.remember(MAKE, Decision(True, "folder"))
    for approvals in (one, other):
        assert judged(approvals, EDIT) == "no"
        assert judged(approvals, MAKE) == "rule"


def test_a_rule_says_word_for_word_what_it_allows():
    assert rule_for(MAKE, True).words() == "allow run_command with exactly: make"
    assert rule_for(EDIT, False).words() == "deny every call of edit_file"
    hidden = ToolCall("run_command", {"command": "ls \u202e"})
    assert "\u202e" not in rule_for(hidden, True).words()
    assert rule_for(MAKE, True) == Rule("run_command", True, "make")


def test_rules_that_cannot_be_read_stop_the_session_rather_than_lose_a_deny(own_home):
    path = own_home / "data/approvals.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"/x": [{"tool": 1}]}')
    with pytest.raises(Failure, match="cannot be read"):
        Approvals(Path("/x"))
