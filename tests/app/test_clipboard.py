"""A copy says "copied" only where the system's clipboard took it."""

from __future__ import annotations

import stat

import pytest

from minicpm5_mac.app.clipboard import Copied, copy_text, outcome


def program(folder, body: str) -> str:
    path = folder / "clip"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_clipboard_program_gets_every_byte(tmp_path):
    sent: list[str] = []
    clip = program(tmp_path, f"cat > {tmp_path}/taken")
    text = "héllo\n中文 👩‍💻"
    assert copy_text(text, sent.append, clip) is Copied.CLIPBOARD
    assert (tmp_path / "taken").read_text(encoding="utf-8") == text
    assert sent == []


@pytest.mark.parametrize("body", ["exit 1", "kill -9 $$"])
def test_a_program_that_fails_copied_nothing(tmp_path, body):
    sent: list[str] = []
    assert copy_text("text", sent.append, program(tmp_path, body)) is Copied.TERMINAL
    assert sent == ["text"]


def test_a_program_that_is_not_there(tmp_path):
    sent: list[str] = []
    assert copy_text("text", sent.append, str(tmp_path / "none")) is Copied.TERMINAL


def test_nothing_is_not_copied():
    assert copy_text("", lambda _: None) is Copied.NOTHING


def test_a_closed_terminal_is_a_failure(tmp_path):
    def closed(_: str) -> None:
        raise OSError

    assert copy_text("text", closed, str(tmp_path / "none")) is Copied.FAILED


@pytest.mark.parametrize("copied", list(Copied))
def test_only_the_system_clipboard_is_called_copied(copied):
    assert outcome(copied, "Reply").endswith("copied.") == (
        copied in (Copied.CLIPBOARD, Copied.FAILED)
    )
    assert ("could not" in outcome(copied, "Reply")) == (copied is Copied.FAILED)
