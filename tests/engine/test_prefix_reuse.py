"""Prefix reuse: what the cache holds is never read again, and never changes what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny.prompts import prompt

from minicpm5_mac.engine.engine import LocalEngine
from minicpm5_mac.engine.kv_state import common_prefix
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.messages import Message, TurnIds
from minicpm5_mac.model.prompt import PromptEncoder
from minicpm5_mac.request import ReplyRequest, Sampling


def user(text: str) -> Message:
    return Message("user", text)


def encoder_of(engine: LocalEngine) -> PromptEncoder:
    assert engine._loaded is not None
    return engine._loaded.model.encoder


def new_turn(engine: LocalEngine, messages, thinking: bool) -> int:
    """Tokens that a new user turn adds, its reply's opener included."""
    return len(encoder_of(engine).turn(messages, len(messages) - 1, thinking=thinking))


@pytest.mark.parametrize("thinking", [None, 0])
def test_a_second_turn_prefills_only_its_own_tokens(engine, say, thinking):
    messages = [user("What is the capital of France?")]
    first = say(messages, thinking=thinking, max_tokens=80)
    messages += [first.message(), user("And of Italy?")]
    second = say(messages, thinking=thinking, max_tokens=8)
    usage = second.end.usage
    # The token that ended the first reply is in the cache too, where the model wrote it.
    assert usage.prefilled_tokens in (n := new_turn(engine, messages, thinking is None), n - 1)
    assert usage.cached_tokens == usage.prompt_tokens - usage.prefilled_tokens


@pytest.mark.parametrize(
    "text",
    [
        "R</think>x",  # the template would write R\n</think>\n\nx
        't\n</think>\n\nI look.\n<function name="f"><param name="a">1</param></function>',
        "t\n</think>\n\nanswer\n\n\n",
    ],
)
def test_replies_that_a_rendering_would_change_are_still_extended(engine, say, text):
    """The next prompt is the ids that were, plus the new turn, not the history rendered again."""
    encoder = encoder_of(engine)
    question = user("Hello")
    opener = encoder.whole([question], thinking=True)
    generated = encoder.tokenizer.encode_prompt(text, anchored=True)
    ids = TurnIds(encoder.fingerprint([question], ()), True, tuple(opener), tuple(generated))
    old = Message("assistant", "x", "R", ids=ids)
    messages = [question, old, user("Go on")]

    say(messages, max_tokens=1)
    assert engine._loaded is not None
    fed = engine._loaded.kv.ids
    assert fed[: len(opener) + len(generated)] == [*opener, *generated]

    more = say(
        [
            *messages,
            Message("assistant", "y", ids=say(messages, max_tokens=1).end.ids),
            user("More"),
        ],
        max_tokens=1,
    )
    assert more.end.usage.prefilled_tokens <= len(encoder.turn(messages, 2, thinking=True)) + 1


def fresh(tiny_model: Path, messages, **request) -> tuple[int, ...]:
    engine = LocalEngine(EngineOptions(str(tiny_model)))
    list(engine.start())
    *_, end = engine.reply(
        ReplyRequest(tuple(messages), sampling=Sampling(temperature=0.0), **request)
    )
    return end.ids.generated


def test_edits_regenerations_and_switches_say_what_a_fresh_engine_says(say, tiny_model):
    first = [user("What is the capital of France?")]
    reply = say(first, max_tokens=40)
    edited = [*first, reply.message(), user("And of Italy?")]
    other = [user("Who wrote Hamlet?")]
    for messages in (edited, other, first, edited, [*first, reply.message(), user("Thanks")]):
        heard = say(messages, max_tokens=12)
        assert heard.end.ids.generated == fresh(tiny_model, messages, max_tokens=12)


def test_a_changed_system_prompt_renders_the_history_again(say):
    first = say([Message("system", "Be brief."), user("Hi")], max_tokens=8)
    again = say(
        [Message("system", "Be long."), user("Hi"), first.message(), user("Yes")], max_tokens=1
    )
    assert again.end.ids.whole


def test_dropping_reasoning_renders_without_it(engine, say):
    messages = [user("What is the capital of France?")]
    first = say(messages, max_tokens=60)
    assert first.reasoning
    messages += [first.message(), user("And of Italy?")]
    dropped = say(messages, keep_reasoning=False, max_tokens=1)
    text = encoder_of(engine).tokenizer.text_of(dropped.end.ids.prompt)
    assert dropped.end.ids.whole
    assert first.reasoning not in text


def test_a_reply_that_was_cut_goes_on_where_it_stopped(say):
    messages = [user("What is the capital of France?")]
    whole = say(messages, thinking=0, max_tokens=40)
    cut = say(messages, thinking=0, max_tokens=3)
    on = say([*messages, cut.message()], thinking=0, continue_last=True, max_tokens=37)
    assert on.end.ids.generated == whole.end.ids.generated
    assert on.end.usage.prefilled_tokens <= 1


def test_a_cancelled_thought_is_closed_before_the_next_turn(engine, say):
    messages = [Message(m["role"], m["content"]) for m in prompt("endless_thinking").messages()]
    events = engine.reply(ReplyRequest(tuple(messages), sampling=Sampling(temperature=0.0)))
    heard = []
    for event in events:
        heard.append(event)
        if type(event).__name__ == "Reasoning":
            engine.cancel()
    end = heard[-1]
    assert (end.finish, end.cause) == ("cancelled", "cancelled")
    old = Message("assistant", "", "…", ids=end.ids)
    after = say([*messages, old, user("Hi")], thinking=0, max_tokens=1)
    assert after.end.ids.prompt[0:3].count(encoder_of(engine).tokenizer.think_close) == 1


@given(
    shared=st.lists(st.integers(0, 9)), a=st.lists(st.integers(0, 9)), b=st.lists(st.integers(0, 9))
)
def test_common_prefix(shared, a, b):
    one, two = shared + a, shared + b
    n = common_prefix(one, two)
    assert n >= len(shared)
    assert one[:n] == two[:n]
    assert n == min(len(one), len(two)) or one[n] != two[n]
