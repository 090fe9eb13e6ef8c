"""Reading costs work in proportion to the reply's length, hostile replies included.

Work is counted, never timed: lines of our code that run, and text at each call of a function.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from reply_tools import TOOLS

import minicpm5_mac.reply
from minicpm5_mac.reply.parser import ReplyParser
from minicpm5_mac.reply.reading import read_reply

OURS = str(Path(minicpm5_mac.reply.__file__).parent)
NOTE = '<function name="note"><param name="text">'
ADD = '<function name="add"><param name="a">'
MIXED = '<function name="mixed"><param name="anything">'
END = "</param></function>"

HOSTILE: dict[str, Callable[[int], str]] = {
    "lone angles": lambda n: "<" * n,
    "closing angles": lambda n: "</" * n,
    "blanks": lambda n: "a" + " " * n + "b" + "\n" * n,
    "leading blanks": lambda n: " " * n + "<thin",
    "think tags": lambda n: "<think></think>" * n,
    "beginnings of think tags": lambda n: "</thin" * n,
    "openers": lambda n: '<function name="f">' * n,
    "bare openers": lambda n: "<function" * n,
    "an opener and blanks": lambda n: '<function name="f">' + " " * n,
    "a long name": lambda n: '<function name="' + "f" * n,
    "a long name, then none": lambda n: '<function name="' + "f" * n + "<",
    "wrappers": lambda n: "<tool_call>" * n,
    "a wrapper and blanks": lambda n: "<tool_call>" + " " * n + "<",
    "an unclosed value": lambda n: NOTE + "a" * n,
    "angles in a value": lambda n: NOTE + "<" * n + END,
    "parameters in a value": lambda n: NOTE + "<param" * n + END,
    "unclosed CDATA": lambda n: NOTE + "<![CDATA[" + "a" * n,
    "ends of CDATA": lambda n: NOTE + "<![CDATA[" + "]]>" * n + END,
    "brackets": lambda n: NOTE + "<![CDATA[" + "]" * n + "]]>" + END,
    "nearly ends of CDATA": lambda n: NOTE + "<![CDATA[" + "]]> </para" * n,
    "openings of CDATA": lambda n: NOTE + "<![CDATA[" * n + END,
    "references": lambda n: NOTE + "&#" * n + "&amp;" * n + END,
    "many parameters": lambda n: NOTE + "</param>" + '<param name="title"></param>' * n + END,
    "many names": lambda n: NOTE + "".join(f'</param><param name="p{i}">' for i in range(n)) + END,
    "many calls": lambda n: '<function name="now"></function>' * n,
    "deep brackets": lambda n: MIXED + "[" * n + END,
    "deep objects": lambda n: MIXED + '{"a":' * n + END,
    "a long number": lambda n: ADD + "9" * n + END,
    "a long hexadecimal number": lambda n: ADD + "0x" + "f" * n + END,
    "signs": lambda n: ADD + "-" * n + END,
    "quotes": lambda n: MIXED + "'" * n + END,
    "backslashes": lambda n: MIXED + "'" + "\\" * n + END,
    "a long list": lambda n: MIXED + "[" + "'a'," * n + "]" + END,
}


def work(run: Callable[[], Any]) -> int:
    """Lines of minicpm5_mac.reply that run, and the text that its functions are given or hold."""
    count = 0

    def lines(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return lines

    def calls(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        held = getattr(frame.f_locals.get("self"), "__dict__", {})
        texts = (*frame.f_locals.values(), *held.values())
        count += sum(len(text) for text in texts if isinstance(text, str))
        return lines

    # Collecting an earlier parser closes its generators, which would count here.
    gc.collect()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(calls)
    try:
        run()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.parametrize("thinking", [False, True], ids=["answer", "thinking"])
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_twice_the_reply_is_at_most_twice_the_work(
    reply: Callable[[int], str], thinking: bool
) -> None:
    once, twice = reply(80), reply(160)

    def read(text: str, chunk: int) -> Callable[[], object]:
        return lambda: read_reply(text, TOOLS, thinking_open=thinking, chunk=chunk)

    for chunk in (1, len(twice)):
        growth = max(2, len(twice) / len(once))
        assert work(read(twice, chunk)) <= 1.05 * growth * work(read(once, chunk))


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_replies_are_read_to_the_end(reply: Callable[[int], str]) -> None:
    text = reply(2_000)
    for thinking in (False, True):
        parser = ReplyParser(TOOLS, thinking_open=thinking)
        parser.feed(text)
        parser.close()
        assert parser.finish in ("complete", "truncated")
