"""What holds for any reply, however it is cut."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from reply_tools import TOOLS

from minicpm5_mac.events import (
    Answer,
    CallParsed,
    CallRejected,
    CallStarted,
    Event,
    Reasoning,
    decode,
    encode,
)
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.reply.parser import ReplyParser
from minicpm5_mac.reply.reading import read_reply

FRAGMENTS = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<function",
        "</function>",
        '<function name="note">',
        '<function name="add">',
        '<functionĠname="add">',
        "<functionname='now'>",
        '<param name="text">',
        '<param name="a">',
        "<paramname=",
        "</param>",
        "<arguments>",
        "</arguments>",
        "<![CDATA[",
        "]]>",
        "]",
        "name=",
        '"',
        "'",
        ">",
        "<",
        "</",
        "{",
        "`",
        "\n",
        " ",
        "Ġ",
        "&lt;",
        "&#65;",
        "1",
        "é北😀",
    ]
)
# Characters of the tags, so that Hypothesis also finds what no list of fragments holds.
REPLIES = st.lists(FRAGMENTS | st.text(max_size=3), max_size=30).map("".join) | st.text(
    alphabet="<>/functionpram ht=\"'k`[]!{\n\u0120", max_size=60
)
CUTS = st.lists(st.integers(1, 12), min_size=1, max_size=60)


def stream(reply: str, cuts: list[int], *, thinking: bool) -> tuple[list[Event], str | None]:
    """All events of the reply fed in pieces of the given sizes, over and over."""
    parser = ReplyParser(TOOLS, thinking_open=thinking)
    events: list[Event] = []
    position = turn = 0
    while position < len(reply):
        step = cuts[turn % len(cuts)]
        events += parser.feed(reply[position : position + step])
        position += step
        turn += 1
    return events + parser.close(), parser.finish


def joined(events: list[Event]) -> list[Event]:
    """The events with neighbouring text made one: how text was cut is no part of the result."""
    result: list[Event] = []
    for event in events:
        last = result[-1] if result else None
        if isinstance(event, Reasoning | Answer) and type(last) is type(event):
            result[-1] = type(event)(last.text + event.text)  # type: ignore[union-attr]
        else:
            result.append(event)
    return result


@given(REPLIES, CUTS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_any_reply_cut_anyhow_gives_the_events_of_the_whole(
    reply: str, cuts: list[int], thinking: bool
) -> None:
    whole, finish = stream(reply, [max(1, len(reply))], thinking=thinking)
    pieces, finish_of_pieces = stream(reply, cuts, thinking=thinking)
    assert joined(pieces) == joined(whole)
    assert finish_of_pieces == finish


@given(REPLIES, st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_a_beginning_shows_is_never_withdrawn(reply: str, thinking: bool) -> None:
    parser = ReplyParser(TOOLS, thinking_open=thinking)
    shown: list[Event] = []
    for char in reply:
        shown += parser.feed(char)
    shown = joined(shown)
    whole = joined(stream(reply, [max(1, len(reply))], thinking=thinking)[0])
    if shown:
        assert whole[: len(shown) - 1] == shown[:-1]
        last, same = shown[-1], whole[len(shown) - 1]
        if isinstance(last, Reasoning | Answer):
            assert type(same) is type(last)
            assert same.text.startswith(last.text)  # type: ignore[union-attr]
        else:
            assert same == last


@given(REPLIES, st.booleans())
@settings(max_examples=200, deadline=None)
def test_events_travel_and_keep_their_order(reply: str, thinking: bool) -> None:
    events, finish = stream(reply, [3], thinking=thinking)
    assert [decode(encode(event)) for event in events] == events
    assert all(event.text for event in events if isinstance(event, Reasoning | Answer))
    open_calls = 0
    for event in events:
        if isinstance(event, CallStarted):
            assert not open_calls
            open_calls += 1
        elif isinstance(event, CallParsed):
            assert open_calls
            open_calls = 0
        elif isinstance(event, CallRejected):
            assert open_calls or event.reason in ("truncated", "inside_thinking")
            open_calls = 0
        elif isinstance(event, Answer):
            assert not open_calls
    assert not open_calls
    assert finish in ("complete", "truncated")


@given(st.text())
def test_text_without_tags_comes_out_unchanged(text: str) -> None:
    text = text.replace("<", "")
    answer = read_reply(text, TOOLS, thinking_open=False, chunk=1)
    assert (answer.content, answer.reasoning) == (text.strip(), "")
    thought = read_reply(text, TOOLS, thinking_open=True, chunk=1)
    assert (thought.content, thought.reasoning) == ("", text.strip())


@given(REPLIES)
@settings(max_examples=200, deadline=None)
def test_in_thinking_only_think_tags_go_missing(reply: str) -> None:
    inside = reply.replace("</think>", "")
    while "</think>" in inside:
        inside = inside.replace("</think>", "")
    reading = read_reply(inside, TOOLS, thinking_open=True, chunk=2)
    without = re.sub("<think>|\\s", "", inside)
    assert re.sub("<think>|\\s", "", reading.reasoning) == without
    assert reading.content == ""
    assert reading.tool_calls == ()


STRINGS = st.text(st.characters(codec="utf-8"), max_size=40)


def written(value: str, style: str) -> str:
    """A string as the model may write it."""
    if style == "cdata" and "]]>" not in value:
        return f"<![CDATA[{value}]]>"
    escaped = "".join(
        f"&#{ord(char)};" if char in "<>&\n\r" or char.isspace() else char for char in value
    )
    return f"\n{escaped}\n" if style == "lines" else escaped


def spaced(value: str) -> bool:
    """XML has no reference for the control characters that count as blanks."""
    return all(ord(char) >= 0x20 or char in "\t\n\r" for char in value)


@given(
    st.lists(
        st.tuples(STRINGS.filter(spaced), st.none() | STRINGS.filter(spaced)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["plain", "lines", "cdata"]),
    st.sampled_from(["", "\n", "\n\n  "]),
    CUTS,
)
@settings(max_examples=200, deadline=None)
def test_calls_come_back_as_they_were_meant(
    calls: list[tuple[str, str | None]], style: str, between: str, cuts: list[int]
) -> None:
    reply = "Look:"
    expected: list[ToolCall] = []
    for text, title in calls:
        arguments: dict[str, Any] = {"text": text} | ({} if title is None else {"title": title})
        expected.append(ToolCall("note", arguments))
        params = between.join(
            f'<param name="{name}">{written(value, style)}</param>'
            for name, value in arguments.items()
        )
        reply += f'{between}<function name="note">{between}{params}{between}</function>'
    events, finish = stream(reply + between, cuts, thinking=False)
    assert [event.call for event in events if isinstance(event, CallParsed)] == expected
    assert not [event for event in events if isinstance(event, CallRejected)]
    text = "".join(event.text for event in events if isinstance(event, Answer))
    assert text == f"Look:{between * len(calls)}".strip()
    assert finish == "complete"
