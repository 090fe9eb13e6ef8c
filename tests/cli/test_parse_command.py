"""`minicpm5-mac parse`: one JSON object on standard output, clear words for bad input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from minicpm5_mac.cli.main import main

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "required": ["a"],
            },
        },
    }
]
CALL = '<function name="add"><param name="a">7</param></function>'


class Parse:
    """Runs the command with a reply on standard input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsysbinary: Any, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsysbinary
        self._folder = folder

    def file(self, content: bytes) -> str:
        path = self._folder / "tools.json"
        path.write_bytes(content)
        return str(path)

    def __call__(self, reply: bytes | str, *options: str) -> tuple[int, bytes, str]:
        data = reply.encode() if isinstance(reply, str) else reply
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "ascii"))
        try:
            code = main(["parse", *options])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = self._capsys.readouterr()
        return code, out, err.decode()


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch, capsysbinary: Any, tmp_path: Path) -> Parse:
    return Parse(monkeypatch, capsysbinary, tmp_path)


def test_a_reply_becomes_one_object(parse: Parse) -> None:
    tools = parse.file(json.dumps(TOOLS).encode())
    code, out, err = parse(f"Hm.\n</think>\n\nSo: {CALL}", "--tools", tools, "--thinking", "open")
    assert json.loads(out) == {
        "reasoning": "Hm.",
        "content": "So:",
        "tool_calls": [{"name": "add", "arguments": {"a": 7}}],
        "rejected": [],
        "finish": "complete",
    }
    assert (code, err) == (0, "")


def test_a_rejected_call_says_why(parse: Parse) -> None:
    tools = parse.file(json.dumps(TOOLS).encode())
    code, out, _ = parse(CALL.replace("7", "seven"), "--tools", tools)
    (rejected,) = json.loads(out)["rejected"]
    assert code == 0
    assert (rejected["reason"], rejected["name"]) == ("wrong_type", "add")
    assert rejected["parameter"] == "a"
    assert "integer" in rejected["detail"]


def test_a_bare_list_of_functions_will_do(parse: Parse) -> None:
    tools = parse.file(json.dumps([tool["function"] for tool in TOOLS]).encode())
    assert json.loads(parse(CALL, "--tools", tools)[1])["tool_calls"]


def test_without_tools_every_tool_is_unknown(parse: Parse) -> None:
    (rejected,) = json.loads(parse(CALL)[1])["rejected"]
    assert rejected["reason"] == "unknown_tool"


def test_the_chunk_changes_nothing(parse: Parse) -> None:
    tools = parse.file(json.dumps(TOOLS).encode())
    reply = f"<think>a</think>北京 😀 {CALL} <functio"
    whole = parse(reply, "--tools", tools)
    for chunk in ("1", "2", "7", "10000"):
        assert parse(reply, "--tools", tools, "--chunk", chunk) == whole


def test_a_reply_that_was_cut_is_truncated(parse: Parse) -> None:
    assert json.loads(parse("<think>a")[1])["finish"] == "truncated"
    assert json.loads(parse("a", "--thinking", "open")[1])["finish"] == "truncated"


def test_an_empty_reply(parse: Parse) -> None:
    assert json.loads(parse("")[1])["content"] == ""


def test_characters_are_printed_as_they_are(parse: Parse) -> None:
    assert "北京 😀".encode() in parse("北京 😀")[1]


def test_bytes_that_are_no_text_are_replaced(parse: Parse) -> None:
    assert json.loads(parse(b"a\xffb")[1])["content"] == "a\ufffdb"


def test_half_a_surrogate_pair_among_the_tools_is_no_trouble(parse: Parse) -> None:
    code, out, _ = parse(CALL, "--tools", parse.file(b'[{"name": "\\ud800"}]'))
    assert code == 0
    assert json.loads(out)["rejected"][0]["reason"] == "unknown_tool"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[", "not JSON"),
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"{}", "no list of tools"),
        (b'"add"', "no list of tools"),
        (b"[5]", "tool 1 has no name"),
        (b'[{"name": "a"}, {"type": "function"}]', "tool 2 has no name"),
        (b'[{"name": 5}]', "tool 1 has no name"),
        (b'[{"name": "a", "parameters": [1]}]', "parameters of tool 1"),
    ],
)
def test_a_bad_file_of_tools_is_named_with_its_fault(
    parse: Parse, content: bytes, words: str
) -> None:
    path = parse.file(content)
    code, out, err = parse("hi", "--tools", path)
    assert code == 2
    assert out == b""
    assert path in err
    assert words in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there(parse: Parse, tmp_path: Path) -> None:
    code, out, err = parse("hi", "--tools", str(tmp_path / "none.json"))
    assert (code, out) == (2, b"")
    assert "none.json" in err


@pytest.mark.parametrize("chunk", ["0", "-1", "two", "1.5", ""])
def test_a_chunk_is_a_positive_number(parse: Parse, chunk: str) -> None:
    code, out, err = parse("hi", "--chunk", chunk)
    assert (code, out) == (2, b"")
    assert "--chunk" in err
