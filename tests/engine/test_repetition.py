"""A loop is told from text that merely repeats itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.engine.repetition import RepetitionWatch


def first_loop(pieces: list[str]) -> int | None:
    """After how many tokens the watch speaks; a token's id is its text's place in a vocabulary."""
    watch = RepetitionWatch()
    vocabulary: dict[str, int] = {}
    for number, piece in enumerate(pieces, 1):
        if watch.feed(vocabulary.setdefault(piece, len(vocabulary)), piece):
            return number
    return None


def words(text: str) -> list[str]:
    return [part for word in text.split(" ") for part in (word, " ")]


LOOPS = {
    "one token": ["no"] * 400,
    "a short cycle": ["wait", ",", " "] * 200,
    "the same line": words("Let me check that again, step by step.\n") * 40,
    "lines in turn": words("First I add the two numbers here.\nThen I take them apart.\n") * 40,
}
TEXTS = {
    "a table of equal cells": ["|", " 0 ", "|", " 0 ", "|", "\n"] * 12,
    "a ruler": ["-"] * 80,
    "a list": [p for i in range(300) for p in words(f"- item number {i} of the list\n")],
    "closing braces": ["}", "\n"] * 20,
    "counting": [str(i) + "\n" for i in range(2000)],
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_noticed_within_their_first_few_hundred_tokens(name):
    at = first_loop(words("Some text before it. ") + LOOPS[name])
    assert at is not None
    assert at < 400


@pytest.mark.parametrize("name", TEXTS)
def test_repetitive_text_is_no_loop(name):
    assert first_loop(TEXTS[name]) is None


@given(st.lists(st.text(max_size=12), max_size=300))
def test_it_takes_any_text(pieces):
    first_loop(pieces)


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12), st.integers(0, 20))
def test_any_short_cycle_is_noticed(cycle, before):
    at = first_loop([f"x{i}" for i in range(before)] + cycle * (600 // len(cycle)))
    assert at is not None


def test_a_loop_in_thinking_does_not_count_for_the_answer():
    watch = RepetitionWatch()
    for _ in range(140):
        assert not watch.feed(1, "no")
    watch.reset()
    for _ in range(140):
        assert not watch.feed(1, "no")
