"""Linear mode: lines in, lines out, nothing that moves, every end in a word."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from minicpm5_mac import events
from minicpm5_mac.app.linear.chat import run_linear
from minicpm5_mac.app.linear.speaker import Speaker
from minicpm5_mac.app.options import AppOptions

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
