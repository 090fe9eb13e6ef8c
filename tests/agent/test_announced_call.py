"""Which answers are announcements of a call that was never made."""

from __future__ import annotations

import pytest
from tiny.prompts import PROMPTS, prompt

from minicpm5_mac.agent.announced_call import announces_call


@pytest.mark.parametrize(
    "text",
    [
        "I will write the file ok.txt now.",
        "I'll read the file first.",
        "Sure! Let me look at main.py.",
        "The bug is in line 3.\n\nNow I will fix it:",
        "I am going to run the tests.",
        "First, I need nothing else. Next, I will search for TODO",
        "好的，让我读取这个文件。",
        "接下来我将运行测试。",
    ],
)
def test_announcements(text):
    assert announces_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Paris.",
        "I fixed the greeting: it says Hello now.",
        "I cannot teleport anyone.",
        "Let me know if you want me to write it.",
        "I will write it if you allow that.",
        "Shall I run the tests?",
        "All right, I leave the file as it is.",
        "I will always love you.",
        "The weather in Oslo: Sunny, 21 degrees",
        "```\nI will read it\n```",
        "I will read it first. Then it was done and all tests pass.",
        "如果你愿意，我会写。",
    ],
)
def test_answers(text):
    assert not announces_call(text)


def test_of_the_tiny_model_s_replies_only_the_promise_is_one():
    promise = prompt("announced_call").replies[0].content
    said = {r.content for p in PROMPTS for r in p.replies if r.ends == "complete" and not r.calls}
    assert {text for text in said if announces_call(text)} == {promise}
