"""Linear mode: lines in, lines out, nothing that moves, every end in a word."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tiny.prompts import prompt

from minicpm5_mac import events
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.linear.chat import run_linear
from minicpm5_mac.app.linear.speaker import Speaker
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.tool_words import OUTCOME_WORDS

QUESTION = "What is the capital of France?"


def typing(lines: Iterable[str]) -> Callable[[str], str]:
    waiting = iter(lines)

    def read(_: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    return read


def chat(options: AppOptions, *lines: str) -> str:
    out = io.StringIO()
    assert run_linear(dataclasses.replace(options, linear=True), typing(lines), out) == 0
    return out.getvalue()


def test_a_conversation_in_lines(options: AppOptions):
    said = chat(
        options,
        QUESTION,
        "/think off",
        "Say this: \\",
        "seven blue lions",
        "/rename Lions",
        "/resume",
        "/export talk.md",
        "/export talk.md",
        "/nonsense",
        "/think much",
        "/quit",
    )
    for line in (
        "Answer:\nParis.\nDone.",
        "Thinking changed.",
        "Title: Lions",
        "1. Lions",
        "Written to talk.md",
        "exists already",
        "/nonsense is not a command",
        "Thinking cannot be 'much'",
    ):
        assert line in said, line
    assert QUESTION in Path("talk.md").read_text(encoding="utf-8")
    assert "\x1b" not in said
    assert "\r" not in said


def test_a_name_without_a_model_leaves_the_loaded_one_as_it_is(options: AppOptions):
    said = chat(options, "/model nosuch", QUESTION)
    assert "There is no model 'nosuch'" in said
    assert "Answer:\nParis.\nDone." in said
    assert said.count("is ready") == 1


def test_it_goes_on_where_it_was(options: AppOptions):
    chat(options, QUESTION)
    said = chat(options, "/resume", "/resume 1", "/regenerate")
    assert f"You: {QUESTION}" in said
    assert said.count("Done.") == 1


@pytest.mark.parametrize(
    ("cause", "word"), [("stop", "Done."), ("cancelled", "Stopped."), ("error", "failed")]
)
def test_every_end_is_a_word(cause, word: str):
    out = io.StringIO()
    Speaker(out).reply([events.Answer("Half a sent"), events.ReplyEnd("complete", cause)])
    assert "Half a sent\n" in out.getvalue()
    assert word in out.getvalue().splitlines()[-1]


def test_a_model_cannot_move_the_cursor():
    out = io.StringIO()
    Speaker(out).reply([events.Answer("a\x1b[2Jb\x07c\rd\n"), events.ReplyEnd("complete", "stop")])
    assert "a[2Jbcd" in out.getvalue()


WRONG, RIGHT = 'print("Helo, world!")\n', 'print("Hello, world!")\n'
TASK = prompt("fix_greeting").messages()[-1]["content"]


@pytest.fixture
def hello(toolbox: Toolbox) -> Path:
    path = toolbox.policy.workspace / "hello.txt"
    path.write_text(WRONG)
    return path


def test_calls_are_allowed_in_lines_and_their_changes_taken_back(
    options: AppOptions, toolbox: Toolbox, hello: Path
):
    contents = []

    def read(question: str) -> str:
        contents.append(hello.read_text())
        return next(lines)

    lines = iter([TASK, "y", "s", "/undo", "/quit"])
    out = io.StringIO()
    run_linear(dataclasses.replace(options, linear=True, toolbox=toolbox), read, out)
    said = out.getvalue()
    for line in (
        "The model wants to run edit_file: change ",
        '+print("Hello, world!")',
        "s and f mean: allow every call of edit_file",
        "The model wants to run run_command: cat hello.txt",
        "1 file changed (/undo takes this back):",
        "changed: hello.txt",
        prompt("fix_greeting").replies[-1].content,
        "Taken back: ",
    ):
        assert line in said, line
    assert "f7" not in said
    assert contents == [WRONG, WRONG, RIGHT, RIGHT, WRONG]
    assert [rule.exact for rule in toolbox.approvals.rules] == ["cat hello.txt"]


@pytest.mark.parametrize(
    "words", [["maybe", "stop", "yesterday", "n", "leave it"], []], ids=["denied", "nobody"]
)
def test_a_call_is_denied_in_lines_and_at_the_end_of_the_input(
    options: AppOptions, toolbox: Toolbox, hello: Path, words: list[str]
):
    said = chat(dataclasses.replace(options, toolbox=toolbox), TASK, *words)
    assert "The model wants to run edit_file" in said
    assert f"edit_file: {OUTCOME_WORDS['denied']}" in said
    assert hello.read_text() == WRONG


def test_tools_are_turned_on_and_widened_in_lines(
    options: AppOptions, workspace: Path, sandbox: None, tmp_path: Path
):
    further = tmp_path / "further"
    further.mkdir()
    said = chat(options, "/grant .", f"/tools {workspace}", f"/grant {further}", "/mode x", "/quit")
    assert "There are no tools here" in said
    assert str(workspace) in said
    assert f"read {further}, for this session" in said
    assert "Say /mode ask, accept-edits or read-only" in said
