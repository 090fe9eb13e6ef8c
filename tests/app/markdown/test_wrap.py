"""Where lines break."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from minicpm5_mac.app.markdown.wrap import breaks

texts = st.lists(
    st.sampled_from(
        ["word", " ", "  ", "中", "，", "“", "”", "a", "longword" * 4, "👩‍👩‍👧", "❤️", "é", "（"]
    )
).map("".join)


def rows(text: str, width: int) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *breaks(text, width), len(text)])]


CASES = {
    "at spaces": ("one two three", 7, ["one two ", "three"]),
    "fits": ("one two", 7, ["one two"]),
    "a long word starts a row": ("a abcdefgh", 5, ["a ", "abcde", "fgh"]),
    "beside wide characters": ("ab中文", 5, ["ab中", "文"]),
    "latin after chinese stays whole": ("中文 word", 6, ["中文 ", "word"]),
    "closing marks stay with what they close": ("中文，中", 5, ["中", "文，", "中"]),
    "opening marks stay with what they open": ("中中（中", 6, ["中中", "（中"]),
    "emoji stay whole": ("👩‍👩‍👧👩‍👩‍👧", 2, ["👩‍👩‍👧", "👩‍👩‍👧"]),
}


@pytest.mark.parametrize(("text", "width", "expected"), CASES.values(), ids=CASES.keys())
def test_breaks(text: str, width: int, expected: list[str]) -> None:
    assert rows(text, width) == expected


@given(texts, st.integers(2, 20))
def test_rows_fit_but_for_the_spaces_that_hang_over(text: str, width: int) -> None:
    for row in rows(text, width):
        assert cell_len(row.rstrip()) <= width


# Where a row holds one wide character, the rules for punctuation have no room to hold.
@given(texts, texts, st.integers(8, 20))
def test_appending_moves_nothing_before_the_last_row(text: str, more: str, width: int) -> None:
    *finished, last = rows(text, width)
    if more[:1] in ("‍", "️"):
        return
    assert rows(text + more, width) == finished + rows(last + more, width)
