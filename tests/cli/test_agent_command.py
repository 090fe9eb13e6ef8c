"""`minicpm5-mac agent -p`: answer on stdout, all else on stderr, approvals on the terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny.prompts import prompt

from minicpm5_mac import events
from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.cli import tool_lines
from minicpm5_mac.messages import ToolCall

FIX = prompt("fix_greeting").messages()[-1]["content"]
READ = "What is in notes.txt?"


def command(workspace: Path, model: Path, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "minicpm5_mac", "agent", str(workspace), "--model", str(model)),
        *("--temperature", "0", "--max-tokens", "200", *arguments),
    ]


def agent(workspace: Path, model: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(workspace, model, *arguments),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def hello(workspace: Path, sandbox: None) -> Path:
    path = workspace / "hello.txt"
    path.write_text('print("Helo, world!")\n')
    return path


def test_without_a_terminal_what_would_ask_is_refused(hello, workspace, tiny_model):
    done = agent(workspace, tiny_model, "-p", FIX, "--json")
    heard = [events.decode(line) for line in done.stdout.splitlines()]
    outcomes = {e.name: e.outcome for e in heard if isinstance(e, events.ToolFinished)}
    assert outcomes["read_file"] == "ok"
    assert outcomes["edit_file"] == "refused"
    assert not any(isinstance(e, events.ApprovalWanted) for e in heard)
    assert hello.read_text() == 'print("Helo, world!")\n'
    assert done.returncode in (0, 4)
    assert isinstance(heard[-1], events.ReplyEnd)


def test_approved_edits_are_made_and_listed_and_the_answer_is_alone_on_stdout(
    hello, workspace, tiny_model
):
    done = agent(workspace, tiny_model, "-p", FIX, "--approve", "edits")
    assert hello.read_text() == 'print("Hello, world!")\n'
    assert f"changed: {hello}" in done.stderr
    assert "→ read_file" in done.stderr
    assert "→" not in done.stdout
    assert done.stdout.strip() or done.returncode == 4
    assert "Traceback" not in done.stderr


def test_the_conversation_is_kept_and_can_be_gone_on_with(hello, workspace, tiny_model):
    agent(workspace, tiny_model, "-p", FIX, "--approve", "read", "--steps", "1")
    again = agent(workspace, tiny_model, "-p", "Thanks", "--continue", "--json")
    heard = [events.decode(line) for line in again.stdout.splitlines()]
    users = [e for e in heard if isinstance(e, events.MessageSaved) and e.role == "user"]
    assert users
    assert users[0].parent is not None


def test_a_limit_is_exit_code_4_with_a_clear_word(hello, workspace, tiny_model):
    done = agent(workspace, tiny_model, "-p", FIX, "--steps", "1")
    assert done.returncode == 4
    assert "it took 1 replies without an answer" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no terminal"),
        (("-p", "x", "--workspace", "."), "given twice"),
        (("-p", "x", "--steps", "0"), "at least 1"),
        (("-p", "x", "--mode", "yolo"), "invalid choice"),
        (("-p", "x", "--read", "/nonexistent"), "not a folder"),
        (("-p", "x", "--read", "/"), "cannot be /"),
        (("-p", "x", "--write", "/usr"), "belongs to the system"),
        (("-p", "x", "--without-sandbox", "--approve", "all-in-sandbox"), "needs the sandbox"),
        (("-p", "x", "--mcp", "files"), "no MCP server 'files' in your configuration"),
        (("-p", "x", "--mcp", "all"), "a table [mcp.NAME]"),
    ],
)
def test_what_cannot_be_meant_is_exit_code_2(workspace, tiny_model, arguments, words):
    done = agent(workspace, tiny_model, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_the_workspace_names_no_server(workspace, tiny_model):
    for name in ("config.toml", ".mcp.json", "minicpm5-mac.toml"):
        (workspace / name).write_text('[mcp.evil]\ncommand = ["touch", "was-here"]\n')
    done = agent(workspace, tiny_model, "-p", "x", "--mcp", "evil")
    assert done.returncode == 2
    assert "no MCP server 'evil'" in done.stderr
    assert not (workspace / "was-here").exists()


def test_a_server_is_used_where_it_is_named_and_its_failure_is_told(
    hello, workspace, tiny_model, own_home
):
    file = own_home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[mcp.bad]\ncommand = ["/bin/sh", "-c", "echo no licence >&2; exit 4"]\n')
    done = agent(workspace, tiny_model, "-p", READ, "--mcp", "bad")
    assert "MCP server bad is not there: it ended with status 4; it said: no licence" in done.stderr
    assert done.returncode in (0, 4)
    without = agent(workspace, tiny_model, "-p", READ)
    assert "MCP" not in without.stderr


def test_the_home_folder_is_no_workspace(tiny_model):
    done = agent(Path.home(), tiny_model, "-p", "x")
    assert done.returncode == 2
    assert "home folder" in done.stderr


def test_own_tools_that_cannot_be_used_are_named(hello, workspace, tiny_model, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "broken.py").write_text("SCHEMA = 1")
    done = agent(workspace, tiny_model, "-p", "x", "--tools", str(folder))
    assert done.returncode == 1
    assert "broken.py cannot be used" in done.stderr


@pytest.mark.parametrize(("answer", "text"), [("y", "Hello"), ("n", "Helo")])
def test_on_a_terminal_the_diff_is_shown_and_the_answer_counts(
    hello, workspace, tiny_model, answer, text
):
    seen = on_terminal(command(workspace, tiny_model, "-p", FIX), answer)
    assert '-print("Helo, world!")' in seen
    assert '+print("Hello, world!")' in seen
    assert "[y] once" in seen
    assert "allow every call of edit_file" in seen
    assert hello.read_text() == f'print("{text}, world!")\n'


@pytest.mark.parametrize("arguments", [("-p", FIX), ("--linear",)], ids=["task", "linear"])
def test_what_was_typed_before_the_question_allows_nothing(hello, workspace, tiny_model, arguments):
    ahead = "y\ny\ns\n" if arguments != ("--linear",) else f"{FIX}\ny\ny\ns\n"
    seen = on_terminal(command(workspace, tiny_model, *arguments), "n", ahead)
    assert "edit_file" in seen
    assert hello.read_text() == 'print("Helo, world!")\n'


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        (("stop", "y"), Decision(True)),
        (("forbid", "S"), Decision(True, "session")),
        (("yesterday", "no", "why"), Decision(False, word="why")),
        (("sure", "yes"), Decision(True)),
        (("not", "never", "", "x", "N", ""), Decision(False)),
        (("stop",), Decision(False, word="nobody answered")),
    ],
)
def test_only_a_whole_answer_counts(monkeypatch, capsys, words, decision):
    monkeypatch.setattr(tool_lines, "terminal", lambda: io.StringIO("\n".join(words) + "\n"))
    given = []
    lines = tool_lines.ToolLines(lambda _, word: given.append(word) is None, print)
    made = ToolCall("run_command", {"command": "ls"})
    lines.show(events.ApprovalWanted(1, made, "command", "ls", "ls", "allow every ls"))
    assert given == [decision]


def test_a_call_that_was_refused_unasked_is_named(hello, workspace, tiny_model):
    done = agent(workspace, tiny_model, "-p", FIX)
    assert "→ edit_file\n  refused (" in done.stderr


def on_terminal(arguments: list[str], answer: str, ahead: str = "") -> str:
    """Run with a terminal of its own; every question gets `answer`. Returns what it showed.

    ahead: typed when something is there to be read, or to be written to.
    """
    answers = {
        b"[n] no: ": answer,
        b" n no: ": answer,
        b"(or Enter): ": "leave it",
        b"or Enter: ": "leave it",
    }
    ready = b"mode ask"
    if "--linear" in arguments:
        ready = b"You: "
        answers[ready] = "/quit"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(arguments[0], arguments)
    shown = b""
    answered = 0
    end = time.monotonic() + 120
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                chunk = os.read(terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
            asked = sum(shown.count(question) for question in answers)
            if ahead and ready in shown:
                os.write(terminal, ahead.encode())
                ahead, answered = "", asked
            if asked > answered:
                answered = asked
                last = max(answers, key=shown.rfind)
                os.write(terminal, answers[last].encode() + b"\n")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return shown.decode(errors="replace").replace("\r\n", "\n")
