"""A full context: never a crash, never a silent cut; oldest reasoning first, then oldest turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.engine.context import Cost, plan_cut, turns
from minicpm5_mac.engine.engine import LocalEngine
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import ContextFull, HistoryShortened, ModelReady
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest, Sampling

LIMIT = 512
LINE = "What is the capital of France? "


@pytest.fixture(scope="module")
def small(tiny_model: Path):
    engine = LocalEngine(EngineOptions(str(tiny_model), context=LIMIT))
    *_, ready = engine.start()
    assert isinstance(ready, ModelReady)
    assert ready.context_limit == LIMIT
    return engine


def conversation(exchanges: int) -> list[Message]:
    messages = [Message("system", "Be kind.")]
    for number in range(exchanges):
        messages.append(Message("user", f"{number}: {LINE * 2}"))
        messages.append(Message("assistant", f"{number}. Paris. " * 4, f"thought {number} " * 10))
    return [*messages, Message("user", LINE)]


def ask(engine, messages, when_full="stop", max_tokens=4):
    return list(
        engine.reply(
            ReplyRequest(
                tuple(messages),
                sampling=Sampling(temperature=0.0),
                thinking=0,
                when_full=when_full,
                max_tokens=max_tokens,
            )
        )
    )


def test_a_full_context_is_said_and_nothing_is_cut(small):
    full, end = ask(small, conversation(8))
    assert isinstance(full, ContextFull)
    assert full.needed > LIMIT == full.limit
    assert full.can_shorten
    assert (end.finish, end.cause) == ("failed", "context_full")


def test_shortening_cuts_once_down_to_seventy_percent_and_the_next_turns_extend_it(small):
    messages = conversation(8)
    events = ask(small, messages, "shorten")
    (cut,) = [e for e in events if isinstance(e, HistoryShortened)]
    assert cut.tokens_after <= 0.7 * LIMIT
    assert 0 not in cut.left_out
    assert not set(cut.left_out) & set(range(len(messages) - 3, len(messages)))
    assert list(cut.left_out) == sorted(cut.left_out)

    end = events[-1]
    assert end.finish in ("complete", "truncated")
    more = [*messages, Message("assistant", "Paris.", ids=end.ids), Message("user", "Thanks")]
    again = ask(small, more, "shorten")
    assert not any(isinstance(e, HistoryShortened) for e in again)
    assert again[-1].usage.cached_tokens >= end.usage.prompt_tokens


def test_a_message_that_is_too_long_by_itself_is_refused_with_its_size(small):
    full, end = ask(small, [Message("user", LINE * 200)], "shorten")
    assert isinstance(full, ContextFull)
    assert not full.can_shorten
    assert f"needs {full.needed:,} tokens and room for a reply" in end.detail
    assert f"the context holds {LIMIT:,}" in end.detail


def test_a_message_that_was_too_long_is_in_the_way_of_no_later_one(small):
    messages = [*conversation(1), Message("user", LINE * 200), Message("user", LINE)]
    full, _ = ask(small, messages)
    assert full.can_shorten
    events = ask(small, messages, "shorten")
    (cut,) = [e for e in events if isinstance(e, HistoryShortened)]
    assert cut.left_out == (len(messages) - 2,)  # and nothing of the exchange before it
    assert events[-1].finish in ("complete", "truncated")


def test_of_messages_without_a_reply_only_the_last_one_stays_for_sure():
    messages = [message("user", 0), message("assistant", 1), message("user", 2), message("user", 3)]
    costs = [Cost(5, 0), Cost(5, 0), Cost(5, 0), Cost(5, 0)]
    assert plan_cut(messages, costs, 8).left_out == (0, 1)
    assert plan_cut(messages, costs, 12).left_out == (0, 1, 2)
    assert plan_cut(messages, [*costs[:2], Cost(500, 0), costs[3]], 490).left_out == (2,)


def test_a_reply_ends_where_the_context_does(small):
    messages = [Message("user", "Write a long answer about the sea.")]
    end = ask(small, messages, max_tokens=LIMIT * 2)[-1]
    assert end.usage.context_used <= LIMIT
    assert end.cause in ("context", "stop", "loop")


def message(role: str, number: int) -> Message:
    return Message(role, str(number), "r" if role == "assistant" else "")  # type: ignore[arg-type]


@given(
    system=st.booleans(),
    tails=st.lists(st.lists(st.sampled_from(["assistant", "tool"]), max_size=4), min_size=1),
    surplus=st.integers(0, 3000),
)
def test_what_is_kept_is_the_system_prompt_and_the_end(system, tails, surplus):
    messages = [message("system", 0)] if system else []
    for tail in tails:
        messages.append(message("user", len(messages)))
        for role in tail:
            messages.append(message(role, len(messages)))
    costs = [Cost(7, 20) for _ in messages]
    cut = plan_cut(messages, costs, surplus)
    groups = turns(messages)
    out = set(cut.left_out)
    assert not (system and 0 in out)
    assert not out & set(groups[-1])
    for group in groups:  # turns go whole, oldest first
        assert not out & set(group) or set(group) <= out
    kept = [g for g in groups if not set(g) <= out]
    assert kept == groups[len(groups) - len(kept) :]
    assert not set(cut.without_reasoning) & (out | {i for g in groups[-2:] for i in g})
    if out:  # reasoning goes before any turn does
        rest = [i for g in groups[:-2] for i in g if messages[i].reasoning and i not in out]
        assert set(rest) <= set(cut.without_reasoning)
