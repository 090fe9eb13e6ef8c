"""The thinking budget: the model writes at most budget + 32 tokens, then the answer follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny.prompts import prompt

from minicpm5_mac.engine.engine import LocalEngine
from minicpm5_mac.engine.thinking import (
    CALL_GRACE,
    CLOSING_SENTENCE,
    LINE_GRACE,
    Place,
    ThinkingBudget,
    room_for_thinking,
)
from minicpm5_mac.events import Reasoning
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest, Sampling

TAGS = ("<think>", "</think>")


def question(name: str) -> list[Message]:
    return [Message(m["role"], m["content"]) for m in prompt(name).messages()]


def tags_in(engine: LocalEngine, ids) -> list[str]:
    assert engine._loaded is not None
    tokenizer = engine._loaded.model.encoder.tokenizer
    return [t for t in map(tokenizer.token_text, ids) if t in TAGS]


@pytest.mark.parametrize("budget", [1, 16, 64])
@pytest.mark.parametrize("name", ["long_thinking", "endless_thinking"])
def test_a_spent_budget_closes_the_block_and_the_answer_follows(engine, say, name, budget):
    heard = say(question(name), thinking=budget, max_tokens=400)

    (closed,) = heard.closed
    assert closed.cause == "budget"
    assert budget <= closed.tokens <= budget + LINE_GRACE
    assert closed.fed > 0
    assert heard.end.usage.thinking_tokens == closed.tokens
    assert heard.end.usage.fed_tokens == closed.fed
    assert heard.end.finish == "complete"
    assert heard.reasoning.endswith(CLOSING_SENTENCE)
    assert heard.answer.strip()
    assert not any(tag in heard.answer + heard.reasoning for tag in TAGS)


def test_the_fed_close_is_in_the_ids_and_in_the_cache(engine, say):
    messages = question("endless_thinking")
    first = say(messages, thinking=16, max_tokens=200)
    ids = first.end.ids
    assert ids is not None
    assert tags_in(engine, ids.generated) == ["</think>"]
    usage = first.end.usage
    assert len(ids.generated) == usage.generated_tokens + usage.fed_tokens

    again = say([*messages, first.message(), Message("user", "And now?")], max_tokens=1)
    fed = len(ids.prompt) + len(ids.generated)
    assert again.end.usage.cached_tokens >= fed


def test_budget_zero_is_thinking_off(engine, say):
    heard = say(question("capital"), thinking=0, max_tokens=60)
    assert heard.reasoning == ""
    assert heard.closed == []
    assert tags_in(engine, heard.end.ids.generated) == []


def test_a_block_that_the_model_closes_is_left_alone(engine, say):
    heard = say(question("capital"), thinking=500, max_tokens=200)
    (closed,) = heard.closed
    assert (closed.cause, closed.fed) == ("model", 0)
    assert CLOSING_SENTENCE not in heard.reasoning


def test_steps_of_one_turn_share_the_budget(say):
    heard = say(question("endless_thinking"), thinking=64, thinking_spent=60, max_tokens=200)
    (closed,) = heard.closed
    assert 64 <= closed.tokens <= 64 + LINE_GRACE  # of the turn, spent ones included
    spent = say(question("endless_thinking"), thinking=64, thinking_spent=64, max_tokens=60)
    assert spent.reasoning == ""


def test_answer_now_closes_as_a_spent_budget_does(engine):
    request = ReplyRequest(
        tuple(question("endless_thinking")), sampling=Sampling(temperature=0.0), max_tokens=300
    )
    events = []
    for event in engine.reply(request):
        events.append(event)
        if isinstance(event, Reasoning):
            engine.answer_now()
    closed = [e for e in events if type(e).__name__ == "ThinkingClosed"]
    assert [c.cause for c in closed] == ["answer_now"]
    assert closed[0].tokens <= 2 + LINE_GRACE


def test_a_capped_reply_leaves_room_for_the_answer(say):
    heard = say(question("endless_thinking"), max_tokens=120)
    (closed,) = heard.closed
    assert closed.cause == "room"
    assert closed.tokens <= room_for_thinking(120)
    assert heard.answer.strip()


# The rule alone -----------------------------------------------------------------------------

ANYWHERE = Place(whole_character=True, line_end=False, in_call=False)


def spend(budget: ThinkingBudget, places) -> tuple[int, str | None]:
    """How many tokens were written before the block had to close, and why."""
    for place in places:
        budget.count()
        cause = budget.close_now(place)
        if cause:
            return budget.tokens, cause
    return budget.tokens, None


@given(
    limit=st.integers(1, 100),
    places=st.lists(
        st.builds(
            Place, whole_character=st.booleans(), line_end=st.booleans(), in_call=st.just(False)
        ),
        min_size=140,
        max_size=140,
    ),
)
def test_never_more_than_32_tokens_beyond_the_budget(limit, places):
    tokens, cause = spend(ThinkingBudget(limit), places)
    assert cause == "budget"
    assert limit <= tokens <= limit + LINE_GRACE


def test_the_close_waits_for_the_end_of_a_line():
    line = [ANYWHERE] * 14 + [Place(True, True, False)] + [ANYWHERE] * 50
    assert spend(ThinkingBudget(10), line) == (15, "budget")


def test_the_close_waits_for_a_whole_character():
    half = Place(whole_character=False, line_end=False, in_call=False)
    places = [ANYWHERE] * 4 + [half] * (LINE_GRACE - 1) + [ANYWHERE] * 9
    tokens, _ = spend(ThinkingBudget(5), places)
    assert places[tokens - 1].whole_character


def test_an_open_call_is_not_cut_in_half_but_may_not_go_on_for_ever():
    in_call = Place(whole_character=True, line_end=True, in_call=True)
    assert spend(ThinkingBudget(10), [in_call] * 60 + [ANYWHERE] * 99)[0] > 60
    assert spend(ThinkingBudget(10), [in_call] * 999)[0] == 10 + CALL_GRACE


@given(most=st.integers(1, 5000))
def test_some_of_a_capped_reply_is_always_the_answers(most):
    assert 0 <= room_for_thinking(most) < most
