"""Titles: one visible line from the first message."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.conversations.title import LONGEST, UNTITLED, clean_title, title_from


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("\n \t\n  What is this?\nSecond line", "What is this?"),
        ("a  b\tc", "a b c"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("word " * 20, "word " * 11 + "word…"),
        ("word " * 11 + "12345", "word " * 11 + "12345"),
        ("十" * 80, "十" * 59 + "…"),
        ("", UNTITLED),
        (" \u200b\u202e\x07\n", UNTITLED),
        ("\u202eevil\u2066 \x1b[31mred", "evil [31mred"),
        ("\u200b\nsecond", "second"),
        ("line\u2028separator", "line"),
    ],
)
def test_titles(text: str, title: str):
    assert title_from(text) == title


@given(st.text())
def test_a_title_is_never_empty_long_or_more_than_one_visible_line(text: str):
    title = title_from(text)
    assert 0 < len(title) <= LONGEST
    assert not [c for c in title if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    assert title == clean_title(title)
