"""What the parser tells while a reply is still being written."""

from __future__ import annotations

import pytest
from reply_tools import TOOLS

from minicpm5_mac.events import (
    Answer,
    CallParsed,
    CallRejected,
    CallStarted,
    Event,
    Reasoning,
)
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.reply.parser import ReplyParser


def parser(*, thinking: bool = False) -> ReplyParser:
    return ReplyParser(TOOLS, thinking_open=thinking)


@pytest.mark.parametrize(
    ("reply", "thinking", "in_call"),
    [
        ("", False, False),
        ("a", False, False),
        ("a <", False, True),
        ("a <f", False, True),
        ("a <func", False, True),
        ("a <functional", False, False),
        ("a <thi", False, False),
        ("a `<func", False, False),
        ('a <function name="no', False, True),
        ('a <function name="now">', False, True),
        ('a <function name="now"> is', False, False),
        ('a <function name="now"></func', False, True),
        ('a <function name="now"></function>', False, False),
        ('<function name="add"><param name="a">1</param>', False, True),
        ('<function name="add"><param name="a"><![CDATA[</function>', False, True),
        ("<", False, True),
        ("<func", False, True),
        ("<thi", False, False),
        ("<tool_call>", False, True),
        ("<tool_call> words", False, False),
        ("<", True, True),
        ("hm <", True, True),
        ("hm </", True, False),
        ("hm <func", True, True),
        ('hm <function name="add"><param name="a">', True, True),
        ('hm <function name="now"></function>', True, False),
        ('hm <function name="add"><param name="a"></think>', True, False),
        ("hm</think><func", True, True),
    ],
)
def test_whether_a_call_or_its_beginning_is_being_written(
    reply: str, thinking: bool, in_call: bool
) -> None:
    whole, pieces = parser(thinking=thinking), parser(thinking=thinking)
    whole.feed(reply)
    for char in reply:
        pieces.feed(char)
    assert whole.in_call is in_call
    assert pieces.in_call is in_call


def test_whether_a_block_is_open() -> None:
    reply = parser(thinking=True)
    assert reply.thinking
    reply.feed("a</think")
    assert reply.thinking
    reply.feed(">")
    assert not reply.thinking
    reply.feed("<think>")
    assert not reply.thinking


def test_a_leading_think_tag_opens_a_block() -> None:
    reply = parser()
    reply.feed("\n<think")
    assert not reply.thinking
    reply.feed(">")
    assert reply.thinking


def test_whether_the_last_line_is_over() -> None:
    reply = parser(thinking=True)
    assert reply.at_line_end
    reply.feed("a")
    assert not reply.at_line_end
    reply.feed("\n")
    reply.feed("")
    assert reply.at_line_end
    reply.feed("\n b")
    assert not reply.at_line_end


def test_the_end_is_told_once() -> None:
    reply = parser()
    assert reply.finish is None
    reply.feed("a <function")
    assert [type(event) for event in reply.close()] == [CallRejected]
    assert reply.finish == "truncated"
    assert reply.close() == []


def events(reply: ReplyParser, *pieces: str) -> list[list[Event]]:
    return [reply.feed(piece) for piece in pieces]


def test_text_comes_as_soon_as_it_cannot_be_a_tag() -> None:
    assert events(parser(), "3 <", " 4 <", "b", "><th", "e", " </thin", "g") == [
        [Answer("3")],
        [Answer(" < 4")],
        [Answer(" <b")],
        [Answer(">")],
        [Answer("<the")],
        [],
        [Answer(" </thing")],
    ]
    assert events(parser(thinking=True), "a<", "/", "t", "a") == [
        [Reasoning("a")],
        [],
        [],
        [Reasoning("</ta")],
    ]


def test_blanks_are_held_until_text_shows_that_they_are_inside() -> None:
    assert events(parser(), "  a \n", "\n", "b ") == [[Answer("a")], [], [Answer(" \n\nb")]]


def test_a_call_is_told_when_it_is_certain_and_when_it_is_whole() -> None:
    assert events(
        parser(), 'a <function name="add">', "<param", ' name="a">7</param>', "</function", "> b"
    ) == [
        [Answer("a")],
        [CallStarted("add")],
        [],
        [],
        [CallParsed(ToolCall("add", {"a": 7})), Answer("  b")],
    ]


def test_the_text_of_a_call_in_thinking_is_shown_as_it_comes() -> None:
    pieces = ['a <function name="now">', "</function>", "b"]
    shown = events(parser(thinking=True), *pieces)
    assert shown[0] == [Reasoning("a")]
    assert [event.text for event in shown[1] if isinstance(event, Reasoning)] == [
        ' <function name="now"></function>'
    ]
    assert [event.reason for event in shown[1] if isinstance(event, CallRejected)] == [
        "inside_thinking"
    ]


def test_a_rejected_call_names_the_parameter_and_what_was_expected() -> None:
    told = parser().feed('<function name="mixed"><param name="small">10</param></function>')[-1]
    assert isinstance(told, CallRejected)
    assert (told.reason, told.parameter) == ("wrong_type", "small")
    assert "integer" in told.detail
    assert "9" in told.detail


def test_an_unknown_tool_is_told_with_the_known_ones() -> None:
    told = parser().feed('<function name="rm"></function>')[-1]
    assert isinstance(told, CallRejected)
    assert "now, note, add, mixed" in told.detail


@pytest.mark.parametrize(
    "tools",
    [
        [{}],
        [{"function": None}],
        [{"name": 5}],
        [{"name": "now", "parameters": "x"}],
        [{"function": {"name": "now", "parameters": {"properties": []}}}],
        [5],
        ["now"],
    ],
)
def test_broken_tools_raise_nothing(tools: list) -> None:
    reply = ReplyParser(tools, thinking_open=False)
    told = reply.feed('<function name="now"><param name="a">1</param></function>')[-1]
    assert isinstance(told, CallRejected)
    assert told.reason in ("unknown_tool", "unknown_parameter")


def test_definitions_of_other_shapes() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for tool in (
        {"name": "t", "parameters": schema},
        {"name": "t", "inputSchema": schema},
        {"name": "t", "input_schema": schema},
        {"function": {"name": "t", "parameters": schema}},
    ):
        told = ReplyParser([tool], thinking_open=False).feed(
            '<function name="t"><param name="a">1</param></function>'
        )[-1]
        assert told == CallParsed(ToolCall("t", {"a": 1}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"additionalProperties": False}, "unknown_parameter"),
        ({"additionalProperties": True}, None),
        ({"additionalProperties": {"type": "string"}}, None),
        ({"additionalProperties": {"type": "integer"}}, "wrong_type"),
        ({"patternProperties": {"^x-": {"type": "string"}}}, None),
        ({"patternProperties": {"^y-": {"type": "string"}}}, "unknown_parameter"),
        ({"patternProperties": {"(": {}}}, "unknown_parameter"),
        ({"allOf": [{"properties": {"x-a": {"type": "string"}}}]}, None),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"x-a": {}}}}}, None),
        ({"properties": {"x-a": {}}, "minProperties": 2}, "wrong_type"),
        (
            {"properties": {"x-a": {}}, "$defs": {"A": {"required": ["b"]}}, "$ref": "#/$defs/A"},
            "missing_parameter",
        ),
    ],
)
def test_a_schema_is_heard_as_a_whole(schema: dict, reason: str | None) -> None:
    tool = {"name": "t", "parameters": {"type": "object", **schema}}
    told = ReplyParser([tool], thinking_open=False).feed(
        '<function name="t"><param name="x-a">word</param></function>'
    )[-1]
    assert getattr(told, "reason", None) == reason
