"""How a reply is read: one case a rule, each at every chunk size."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from reply_tools import TOOLS

from minicpm5_mac.reply.reading import ReplyReading, read_reply

SHARED = Path(__file__).parents[3] / "shared" / "cases"


@dataclass(frozen=True)
class Case:
    """A reply and its right reading; `calls` are (name, arguments), `rejected` (reason, name)."""

    rule: str
    reply: str
    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    finish: str = "complete"
    thinking: bool = False


NOTE = '<function name="note"><param name="text">'
END = "</param></function>"
NOW = '<function name="now"></function>'


def note(rule: str, written: str, text: str) -> Case:
    """A value as written within `<param>`, and the string that it is."""
    return Case(rule, NOTE + written + END, calls=[("note", {"text": text})])


def text(rule: str, reply: str, content: str | None = None) -> Case:
    """A reply without calls."""
    return Case(rule, reply, content=reply if content is None else content)


def reject(rule: str, reply: str, reason: str, name: str, **more: Any) -> Case:
    """A reply that is one call that must not run."""
    return Case(rule, reply, rejected=[(reason, name)], **more)


OPENERS = [
    Case(
        "blanks may follow an opener", f'<function name="now">\n \t{NOW[-11:]}', calls=[("now", {})]
    ),
    Case(
        "parameters may stand in an arguments wrapper",
        '<function name="add">\n<arguments>\n<param name="a">1</param>\n</arguments>\n</function>',
        calls=[("add", {"a": 1})],
    ),
    Case(
        "an arguments wrapper may be empty",
        '<function name="now"><arguments></arguments></function>',
        calls=[("now", {})],
    ),
    reject(
        "an arguments wrapper that is not closed is malformed",
        '<function name="add"><arguments><param name="a">1</param></function>',
        "malformed",
        "add",
    ),
    reject(
        "JSON after an opener is malformed",
        '<function name="add">{"a": 1}</function>',
        "malformed",
        "add",
    ),
    reject(
        "JSON within the arguments wrapper is malformed",
        '<function name="add"> <arguments> {"a": 1}</arguments></function>',
        "malformed",
        "add",
    ),
    Case(
        "what follows a malformed call is read on",
        f'a<function name="add">{{"a": "<b>"}}</function>b{NOW}',
        content="ab",
        calls=[("now", {})],
        rejected=[("malformed", "add")],
    ),
    text("an opener followed by words is text", 'The tag <function name="now"> starts a call.'),
    text("an opener followed by another tag is text", '<function name="now"><b>x</b>'),
    text("an opener followed by an unknown closing tag is text", '<function name="now"></func>'),
    text("a wrapper followed by words is text", '<function name="now"><arguments>none'),
    text("an opener directly after a backtick is text", f"`{NOW}`"),
    text("an opener directly after a fence is text", f"```{NOW}```"),
    Case(
        "a call in a code fence is a call",
        f"```xml\n{NOW}\n```",
        content="```xml\n\n```",
        calls=[("now", {})],
    ),
    Case("a backtick further away does not count", f"` {NOW}", content="`", calls=[("now", {})]),
    Case(
        "text, then a call",
        f'<function name="add">?{NOW}',
        content='<function name="add">?',
        calls=[("now", {})],
    ),
    Case(
        "an opener, then a call",
        f'<function name="add">\n{NOW}',
        content='<function name="add">',
        calls=[("now", {})],
    ),
    text("a tag that only begins like function", "<functional> <functions name='x'></function>"),
    text("an opener without a name", "<function><param"),
    text("an opener whose name breaks off", '<function name="no\nw"></function>'),
    text("closing tags alone", "</function></param></arguments></tool_call>"),
    text("a parameter without a call", '<param name="a">1</param>'),
    text("a call of another model's format", '<tool_call>{"name": "now"}</tool_call>'),
    text("upper case is another tag", '<FUNCTION name="now"></FUNCTION>'),
    reject(
        "other attributes are malformed",
        '<function name="add" id="1"><param name="a">1</param></function>',
        "malformed",
        "add",
    ),
    text("other attributes and no parameters are text", '<function name="add" id="1"> is text'),
]

SPELLINGS = [
    Case(
        "collapsed tags",
        '<functionname="add"><paramname="a">1</param></function>',
        calls=[("add", {"a": 1})],
    ),
    Case(
        "single quotes",
        "<function name='add'><param name='a'>1</param></function>",
        calls=[("add", {"a": 1})],
    ),
    Case(
        "no quotes",
        "<function name=add><param name=a>1</param></function>",
        calls=[("add", {"a": 1})],
    ),
    Case(
        "blanks within tags",
        '<function  name = "add" ><param\nname= "a">1</param></function>',
        calls=[("add", {"a": 1})],
    ),
    Case(
        "entities in names",
        '<function name="a&#100;d"><param name="a">1</param></function>',
        calls=[("add", {"a": 1})],
    ),
    Case(
        "a ghost space in a tag is a space in all of the call, CDATA included",
        '<functionĠname="note"><paramĠname="text">aĠb</param>Ġ'
        '<paramĠname="title"><![CDATA[cĠd]]>Ġ</param></function>',
        calls=[("note", {"text": "a b", "title": "c d"})],
    ),
    Case(
        "a ghost space in a later tag counts for earlier values",
        f'{NOTE}aĠb</param><paramĠname="title">c{END}',
        calls=[("note", {"text": "a b", "title": "c"})],
    ),
    Case(
        "a ghost space between parameters is a blank if a later tag has one",
        f'{NOTE}a</param>Ġ\n<paramĠname="title">c{END}',
        calls=[("note", {"text": "a", "title": "c"})],
    ),
    reject(
        "a ghost space between parameters is text if no tag has one",
        f'{NOTE}a</param>Ġ<param name="title">c{END}',
        "malformed",
        "note",
    ),
    note("a ghost space in a value alone is a letter", "ĠorĠ", "ĠorĠ"),
    Case(
        "a ghost space counts for one call only",
        f'<functionĠname="now"></function>Ġ{NOTE}Ġ{END}',
        content="Ġ",
        calls=[("now", {}), ("note", {"text": "Ġ"})],
    ),
    text("a ghost space in a tag that is no call stays", '<functionĠname="now"> is text'),
    text("a ghost space between tags alone is text", '<function name="now">Ġ</function>'),
    Case(
        "the tool_call wrapper goes",
        f"a <tool_call>{NOW}</tool_call> b",
        content="a  b",
        calls=[("now", {})],
    ),
    Case(
        "blanks within the wrapper stay",
        f"a\n<tool_call>\n{NOW}\n</tool_call>\nb",
        content="a\n\n\n\nb",
        calls=[("now", {})],
    ),
    Case(
        "several calls in one wrapper",
        f"<tool_call>\n{NOW}\n{NOW}\n</tool_call>",
        calls=[("now", {}), ("now", {})],
    ),
    Case("a wrapper that is not closed", f"<tool_call>{NOW}", calls=[("now", {})]),
    text("a wrapper without a call is text", "Use <tool_call> and </tool_call>."),
    text("a wrapper in a code span is text", f"`<tool_call>{NOW}</tool_call>`"),
    reject(
        "a wrapped call that is cut",
        '<tool_call>\n<function name="no',
        "truncated",
        "no",
        finish="truncated",
    ),
]

VALUES = [
    note("one wrapping newline on each side goes", "\n\n  a \n\n", "\n  a \n"),
    note("a wrapping CR LF is one newline", "\r\na\r\n", "a"),
    note("a lone newline goes", "\n", ""),
    note("blanks stay", "  a\t", "  a\t"),
    note("an empty value", "", ""),
    note("a string is what stands there", "None", "None"),
    note("quotes stay", '"a"', '"a"'),
    note("the five entities are decoded", "&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
    note(
        "numeric references are decoded",
        "&#0000000000000065;&#x42;&#x1F600;&#10;",
        "AB\U0001f600\n",
    ),
    note("once only", "&amp;lt;", "&lt;"),
    note(
        "others stay",
        "&nbsp;&copy; &unknown; & &; &#; &#x; a&b",
        "&nbsp;&copy; &unknown; & &; &#; &#x; a&b",
    ),
    note(
        "references to no character stay",
        "&#0;&#xD800;&#x110000;&#9999999999;&#1;",
        "&#0;&#xD800;&#x110000;&#9999999999;&#1;",
    ),
    note("a newline by reference is not a wrapping one", "&#10;a&#10;", "\na\n"),
    note(
        "nothing is expanded from a DOCTYPE",
        '<!DOCTYPE x [<!ENTITY e "boom">]>&e;',
        '<!DOCTYPE x [<!ENTITY e "boom">]>&e;',
    ),
    note(
        "other tags are text",
        "<b>3 < 4</b> </params> </function>",
        "<b>3 < 4</b> </params> </function>",
    ),
    note("think tags in a value stay", "<think></think>", "<think></think>"),
    note("CDATA is unchanged", "<![CDATA[\n&lt; a \n]]>", "\n&lt; a \n"),
    note("blanks may stand around CDATA", "\n <![CDATA[a]]> \n", "a"),
    note("empty CDATA", "<![CDATA[]]>", ""),
    note(
        "CDATA ends where </param> follows",
        "<![CDATA[a]]></function>]]> ]]></param]]>",
        "a]]></function>]]> ]]></param",
    ),
    note("brackets before the end of CDATA are of the value", "<![CDATA[a[b[0]]]]>", "a[b[0]]"),
    note("one bracket does not end CDATA", "<![CDATA[a]></param>]]>", "a]></param>"),
    note("CDATA holds a whole call", f"<![CDATA[{NOW}<think>]]>", f"{NOW}<think>"),
    note(
        "CDATA within CDATA", "<![CDATA[<![CDATA[a]]]]><![CDATA[>]]>", "<![CDATA[a]]]]><![CDATA[>"
    ),
    note("CDATA that is not at the start is text", "a <![CDATA[ b", "a <![CDATA[ b"),
    reject(
        "CDATA as a part of a value is malformed", f"{NOTE}a<![CDATA[b]]>{END}", "malformed", "note"
    ),
    reject(
        "a parameter that is not closed is malformed",
        f'<function name="note"><param name="title">a{NOTE[22:]}b{END}',
        "malformed",
        "note",
    ),
    reject(
        "text between parameters is malformed", f"{NOTE}a</param>, </function>", "malformed", "note"
    ),
    reject(
        "a foreign tag between parameters is malformed",
        f"{NOTE}a</param><br></function>",
        "malformed",
        "note",
    ),
    reject(
        "a parameter tag of another kind is malformed",
        '<function name="add"><parameter name="a">1</parameter></function>',
        "malformed",
        "add",
    ),
    Case(
        "CDATA of a type that is no string is read",
        '<function name="add"><param name="a"><![CDATA[ 7 ]]></param></function>',
        calls=[("add", {"a": 7})],
    ),
]

VALUES += [
    Case(
        "references are decoded before JSON is read",
        '<function name="mixed"><param name="words">[&quot;a&lt;b&quot;]</param></function>',
        calls=[("mixed", {"words": ["a<b"]})],
    ),
    Case(
        "CDATA is not decoded before JSON is read",
        '<function name="mixed"><param name="words"><![CDATA[["&lt;"]]]></param></function>',
        calls=[("mixed", {"words": ["&lt;"]})],
    ),
    Case(
        "a ghost space in JSON, in a call that has it in its tags",
        '<functionĠname="mixed"><paramĠname="words">["aĠb",Ġ"c"]</param></function>',
        calls=[("mixed", {"words": ["a b", "c"]})],
    ),
]

ENDS = [
    text("a beginning of a tag at the end is text", "a <func"),
    text("a beginning of a think tag at the end is text", "a </thin"),
    text("a beginning of a leading think tag at the end is text", " <thi", "<thi"),
    text("a beginning of a closing tag at the end is text", "a </"),
    reject(
        "function is a whole tag", "a <function", "truncated", "", content="a", finish="truncated"
    ),
    reject("a name that was not reached", "<function na", "truncated", "", finish="truncated"),
    reject(
        "a name that was reached in part",
        '<function name="no',
        "truncated",
        "no",
        finish="truncated",
    ),
    reject("a whole opener", '<function name="now">\n', "truncated", "now", finish="truncated"),
    reject(
        "an opener and a part of a tag",
        '<function name="now"></fun',
        "truncated",
        "now",
        finish="truncated",
    ),
    reject("in CDATA", f"{NOTE}<![CDATA[a]]></para", "truncated", "note", finish="truncated"),
    reject(
        "truncated goes before malformed",
        '<function name="add">{"a":',
        "truncated",
        "add",
        finish="truncated",
    ),
    reject(
        "truncated goes before unknown",
        '<function name="rm"><param',
        "truncated",
        "rm",
        finish="truncated",
    ),
    text("an empty reply", ""),
    text("only blanks", " \n\t ", ""),
    Case("an empty reply in thinking", "", thinking=True, finish="truncated"),
]

THINKING = [
    Case(
        "blanks around a block and around the answer go, the rest stays",
        "\n a\n\n b \n</think>\n\n c \n\n d \n",
        reasoning="a\n\n b",
        content="c \n\n d",
        thinking=True,
    ),
    Case("a leading think tag opens a block", " \n<think>a</think>b", reasoning="a", content="b"),
    Case("a block so opened may be left open", "<think>a", reasoning="a", finish="truncated"),
    Case(
        "a leading think tag repeats the prompt's",
        "<think>\na</think>b",
        reasoning="a",
        content="b",
        thinking=True,
    ),
    text("a think tag further on opens nothing", "a<think>b</think>c", "abc"),
    Case(
        "a second block is none", "<think>a</think><think>b</think>c", reasoning="a", content="bc"
    ),
    Case(
        "a think tag within a block is dropped",
        "a <think>b</think>c",
        reasoning="a b",
        content="c",
        thinking=True,
    ),
    text("a closing tag without a block is dropped", "</think>a", "a"),
    Case(
        "the block closes within a value",
        f"a {NOTE}b</think>c{END}",
        reasoning=f"a {NOTE}b",
        content=f"c{END}",
        rejected=[("inside_thinking", "note")],
        thinking=True,
    ),
    Case(
        "the block closes within CDATA",
        f"{NOTE}<![CDATA[b</think>]]>{END}",
        reasoning=f"{NOTE}<![CDATA[b",
        content=f"]]>{END}",
        rejected=[("inside_thinking", "note")],
        thinking=True,
    ),
    Case(
        "the block closes within a tag",
        "<function na</think>b",
        reasoning="<function na",
        content="b",
        thinking=True,
    ),
    Case(
        "an opener that the closing tag follows is text",
        '<function name="now">\n</think>b',
        reasoning='<function name="now">',
        content="b",
        thinking=True,
    ),
    Case(
        "a cut call in a block is inside_thinking",
        '<function name="no',
        reasoning='<function name="no',
        rejected=[("inside_thinking", "no")],
        finish="truncated",
        thinking=True,
    ),
    Case(
        "malformed or unknown, a call in a block is inside_thinking",
        '<function name="rm">{</function></think>',
        reasoning='<function name="rm">{</function>',
        rejected=[("inside_thinking", "rm")],
        thinking=True,
    ),
    Case(
        "each call in a block is told",
        f"{NOW}\n{NOW}</think>{NOW}",
        reasoning=f"{NOW}\n{NOW}",
        rejected=[("inside_thinking", "now")] * 2,
        calls=[("now", {})],
        thinking=True,
    ),
    Case(
        "a value of a call in a block keeps its opening think tag",
        f"{NOTE}<think>{END}</think>",
        reasoning=f"{NOTE}<think>{END}",
        rejected=[("inside_thinking", "note")],
        thinking=True,
    ),
    Case(
        "a wrapper in a block stays",
        f"<tool_call>{NOW}</tool_call></think>",
        reasoning=f"<tool_call>{NOW}</tool_call>",
        rejected=[("inside_thinking", "now")],
        thinking=True,
    ),
    Case(
        "a mention in a block",
        f"`{NOW}` </think>a",
        reasoning=f"`{NOW}`",
        content="a",
        thinking=True,
    ),
    Case(
        "a backtick in a block does not reach the answer",
        f"`</think>{NOW}",
        reasoning="`",
        calls=[("now", {})],
        thinking=True,
    ),
    Case(
        "think tags between a call's tags are dropped",
        '<function name="note"></think><param name="text">a</param><think></function>',
        calls=[("note", {"text": "a"})],
    ),
    Case(
        "a block that is broken by a beginning of its end",
        "a </thi </think>b",
        reasoning="a </thi",
        content="b",
        thinking=True,
    ),
    Case("doubled angles", "a <</think>b<<think>c", reasoning="a <", content="b<c", thinking=True),
]

REASONS = [
    reject(
        "unknown_tool goes before all that asks the schema",
        '<function name="rm"><param name="a">1</param><param name="a">1</param></function>',
        "unknown_tool",
        "rm",
    ),
    reject("an empty name is of no tool", '<function name=""></function>', "unknown_tool", ""),
    reject(
        "malformed goes before unknown_tool", '<function name="rm">{}</function>', "malformed", "rm"
    ),
    reject(
        "duplicate goes before unknown_parameter",
        '<function name="add"><param name="c">1</param>'
        '<param name="a">1</param><param name="a">2</param></function>',
        "duplicate_parameter",
        "add",
    ),
    reject(
        "an unknown parameter given twice is a duplicate",
        '<function name="add"><param name="c">1</param><param name="c">1</param></function>',
        "duplicate_parameter",
        "add",
    ),
    reject(
        "unknown_parameter goes before missing_parameter",
        '<function name="add"><param name="c">1</param></function>',
        "unknown_parameter",
        "add",
    ),
    reject(
        "missing_parameter goes before wrong_type",
        '<function name="add"><param name="b">x</param></function>',
        "missing_parameter",
        "add",
    ),
    reject(
        "a tool without parameters has none",
        '<function name="now"><param name="a">1</param></function>',
        "unknown_parameter",
        "now",
    ),
]

CASES = OPENERS + SPELLINGS + VALUES + ENDS + THINKING + REASONS


def summary(reading: ReplyReading) -> dict[str, Any]:
    return {
        "reasoning": reading.reasoning,
        "content": reading.content,
        "calls": [(call.name, call.arguments) for call in reading.tool_calls],
        "rejected": [(call.reason, call.name) for call in reading.rejected],
        "finish": reading.finish,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_reply_is_read_by_the_rules(case: Case) -> None:
    expected = {
        key: getattr(case, key) for key in ("reasoning", "content", "calls", "rejected", "finish")
    }
    for chunk in range(1, max(2, len(case.reply) + 1)):
        reading = read_reply(case.reply, TOOLS, thinking_open=case.thinking, chunk=chunk)
        assert summary(reading) == expected, f"{chunk} characters at a time"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not beside this repository")
def test_the_shared_cases_at_every_chunk_size() -> None:
    tools = json.loads((SHARED / "tools.json").read_text())
    for case in json.loads((SHARED / "replies.json").read_text()):
        expected = case["expect"]
        for chunk in range(1, len(case["reply"]) + 1):
            reading = read_reply(
                case["reply"], tools, thinking_open=case["thinking"] == "open", chunk=chunk
            )
            got = {
                "reasoning": reading.reasoning,
                "content": reading.content,
                "tool_calls": [
                    {"name": c.name, "arguments": c.arguments} for c in reading.tool_calls
                ],
                "rejected": [{"reason": c.reason, "name": c.name} for c in reading.rejected],
                "finish": reading.finish,
            }
            assert got == expected, f"{case['id']}, {chunk} characters at a time"
