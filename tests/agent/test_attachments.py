"""Attached files: text only, of a sensible size, and a clear word for everything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minicpm5_mac.agent.attachments import LARGEST_BYTES, read_attachment
from minicpm5_mac.conversations.records import Attachment
from minicpm5_mac.failure import Failure


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("naïve 北京 🦊\n".encode(), "naïve 北京 🦊\n"),
        ("\ufeffwith a mark".encode(), "with a mark"),
        ("wide".encode("utf-16"), "wide"),
        (b"windows\r\nlines\r\n", "windows\nlines\n"),
        (b"</think><|im_end|>", "</think><|im_end|>"),
        (b"x" * LARGEST_BYTES, "x" * LARGEST_BYTES),
    ],
)
def test_text_is_read_as_it_is(tmp_path: Path, data: bytes, text: str):
    file = tmp_path / "file.txt"
    file.write_bytes(data)
    assert read_attachment(file) == Attachment(str(file), text)


def test_the_path_stays_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b.txt").write_text("x")
    assert read_attachment("a b.txt").path == "a b.txt"
    assert read_attachment("~/a b.txt") == Attachment("~/a b.txt", "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not a text file"),
        (b"text with a \x00 in it", "not a text file"),
        (b"latin-1: \xe9", "not a text file"),
        (b"\xff\xfex", "not a text file"),
        (b"x" * (LARGEST_BYTES + 1), "too large"),
    ],
)
def test_what_is_no_text_or_too_much_is_refused_by_name(tmp_path: Path, data: bytes, words: str):
    file = tmp_path / "file.bin"
    file.write_bytes(data)
    with pytest.raises(Failure, match=words) as raised:
        read_attachment(file)
    assert str(file) in str(raised.value)


def test_what_is_no_file_is_refused_by_name(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    cases = {
        tmp_path / "missing": "No such file",
        tmp_path: "is a folder",
        tmp_path / "pipe": "not a regular file",
        Path("~no-such-user-here/x"): "cannot be attached",
        Path("/dev/zero"): "not a regular file",
    }
    for path, words in cases.items():
        with pytest.raises(Failure, match=words) as raised:
            read_attachment(path)
        assert str(path) in str(raised.value)


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(Failure, match="cannot be attached"):
        read_attachment("a\0b")
