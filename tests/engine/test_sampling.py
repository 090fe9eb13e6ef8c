"""Sampling: a seed reproduces, temperature 0 is mlx-lm's greedy, defaults are the model's own."""

from __future__ import annotations

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from tiny.prompts import PROMPTS, prompt

from minicpm5_mac.engine.sampler import ban, with_defaults
from minicpm5_mac.events import Notice
from minicpm5_mac.messages import Message
from minicpm5_mac.request import Sampling


def messages_of(name: str) -> list[Message]:
    return [Message(m["role"], m["content"]) for m in prompt(name).messages()]


@pytest.mark.parametrize("name", ["capital", "capital_chinese", "long_answer"])
@pytest.mark.parametrize("thinking", [None, 0])
def test_greedy_ids_equal_mlx_lms(engine, say, name, thinking):
    loaded = engine._loaded.model
    heard = say(messages_of(name), thinking=thinking, max_tokens=200)
    ends = loaded.encoder.tokenizer.end_ids
    theirs = []
    closed_by_us = heard.end.usage.fed_tokens
    steps = generate_step(mx.array(heard.end.ids.prompt), loaded.model, max_tokens=200)
    for token, _ in steps:
        if int(token) in ends:
            break
        theirs.append(int(token))
    ours = list(heard.end.ids.generated)
    if closed_by_us:  # up to where our budget stepped in
        ours = ours[: heard.closed[0].tokens]
    assert ours
    assert ours == theirs[: len(ours)]
    assert closed_by_us or len(ours) == len(theirs)


def test_a_seed_reproduces_a_reply_and_another_one_does_not_have_to(say):
    def roll(seed: int | None) -> tuple[int, ...]:
        sampling = Sampling(temperature=1.5, seed=seed)
        return say(messages_of("dice"), sampling=sampling, max_tokens=40).end.ids.generated

    assert roll(7) == roll(7)
    assert len({roll(seed) for seed in range(6)}) > 1
    assert len({roll(None) for _ in range(6)}) > 1


def test_defaults_come_from_the_models_generation_config():
    config = {"temperature": 0.9, "top_p": 0.5, "do_sample": True}
    assert with_defaults(Sampling(), config) == Sampling(0.9, 0.5, 0.0, 0, 1.0)
    assert with_defaults(Sampling(temperature=0.0), config).temperature == 0.0
    assert with_defaults(Sampling(), {}).temperature == 1.0
    assert with_defaults(Sampling(), {"do_sample": False}).temperature == 0.0


def test_banned_ids_are_never_the_best():
    logits = mx.array([1.0, 9.0, 3.0, 8.0]) + ban([1, 3], 4, mx.float32)
    assert mx.argmax(logits).item() == 2


def test_temperature_zero_is_warned_about_where_the_model_thinks(say):
    def notices(**request) -> list[str]:
        heard = say(messages_of("capital"), max_tokens=2, **request)
        return [e.code for e in heard.events if isinstance(e, Notice) and e.once]

    assert notices() == ["greedy_thinking"]
    assert notices(thinking=0) == []
    assert notices(sampling=Sampling(temperature=1.0)) == []


@pytest.mark.parametrize("name", [p.name for p in PROMPTS if p.name.startswith("capital")])
def test_characters_come_whole(say, name):
    heard = say(messages_of(name), max_tokens=120)
    texts = [getattr(e, "text", "") for e in heard.events]
    assert not any("\ufffd" in text for text in texts)


def test_an_answer_that_goes_round_in_circles_stops_with_a_note(say):
    heard = say(messages_of("looping_answer"), thinking=0, max_tokens=2000)
    assert (heard.end.finish, heard.end.cause) == ("truncated", "loop")
    assert [e.code for e in heard.events if isinstance(e, Notice)] == ["loop"]


def test_thinking_in_circles_is_closed_and_answered(say):
    heard = say(messages_of("looping_thinking"), max_tokens=2000)
    assert [c.cause for c in heard.closed] == ["loop"]
    assert heard.answer.strip()
