"""MarkdownDocument: the same rows from the same text, in whatever pieces it came."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_texts import markdown_texts
from rich.cells import cell_len

from minicpm5_mac.app.markdown import MarkdownDocument
from minicpm5_mac.app.markdown.bench import KINDS, source
from minicpm5_mac.app.markdown.cut import Limits
from minicpm5_mac.app.markdown.layout import Layout
from minicpm5_mac.app.markdown.lines import Row
from minicpm5_mac.app.markdown.parser import parse
from minicpm5_mac.visible_text import visible

NEVER = 10**9


def shown(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.joint, row.text) for row in rows]


def document(text: str, size: int = NEVER, limits: Limits | None = None) -> MarkdownDocument:
    """`text` appended `size` characters at a time, asked for its rows after each."""
    made = MarkdownDocument(limits or Limits())
    for start in range(0, len(text), size):
        made.append(text[start : start + size])
        made.rows(30)
    made.finish()
    return made


def whole(text: str, width: int) -> list[tuple[str, str]]:
    """The rows of a text that is parsed and laid out once, without cuts."""
    rows: list[Row] = []
    for line in Layout().blocks(parse(visible(text))).lines:
        rows += line.rows(width, rows)
    return shown(rows)


LAYOUTS = {
    "heading and paragraph": ("# Head\nText", ["Head", "", "Text"]),
    "a line break stays": ("one\ntwo", ["one", "two"]),
    "list": ("- a\n- b", ["• a", "• b"]),
    "nested lists": ("- a\n  1. b\n  2. c\n     - d", ["• a", "  1. b", "  2. c", "     ▪ d"]),
    "a blank line in a list": ("- a\n\n- b\n- c", ["• a", "", "• b", "• c"]),
    "numbers go on": ("9. a\n1. b", ["9. a", "10. b"]),
    "hanging indent": ("- " + "word " * 8, ["• word word word word word ", "  word word word"]),
    "quote": ("> a\n>\n> b", ["▌ a", "▌ ", "▌ b"]),
    "code": ("```py\na\n\n\tb\n```", [" py", " a", " ", "     b"]),
    "code without a language": ("```\na\n```", [" a"]),
    "code that is open": ("```\na", [" a"]),
    "code in a list": ("1. a\n   ```\n   b\n   ```", ["1. a", "    b"]),
    "indented code": ("    a\n\n    b", [" a", " ", " b"]),
    "rule": ("a\n\n---", ["a", "", "─" * 30]),
    "table": ("|a|b|\n|-|-:|\n|x|10|", ["a │  b", "──┼───", "x │ 10"]),
    "table of wide characters": ("|值|b|\n|-|-|\n|a|c|", ["值 │ b", "───┼──", "a  │ c"]),
    "a cell of two lines": ("|a|b|\n|-|-|\n|x<br>y|z|", ["a │ b", "──┼──", "x │ z", "y │  "]),
    "link with its target": ("[a](http://b.c)", ["a (http://b.c)"]),
    "link that is its target": ("<http://b.c>", ["http://b.c"]),
    "html is text": ("<b>x</b>", ["<b>x</b>"]),
    "references are text": ("[a][1]\n\n[1]: http://b", ["[a][1]", "", "[1]: http://b"]),
    "chinese wraps anywhere": ("好" * 20, ["好" * 15, "好" * 5]),
    "no row starts with a stop": ("好" * 15 + "。", ["好" * 14, "好。"]),
    "escape and bell": ("a\x1b[31m\x07", ["a␛[31m␇"]),
    "bidirectional override": ("a\u202eb", ["a⟨U+202E⟩b"]),
    "line separator": ("a\u2028b", ["a⟨U+2028⟩b"]),
    "form feed": ("a\x0cb", ["a␌b"]),
    "an entity spells a control": ("&#x202e;", ["⟨U+202E⟩"]),
    "carriage returns": ("a\r\nb\rc", ["a", "b␍c"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "rows"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layout(text: str, rows: list[str]) -> None:
    assert [row.text for row in document(text).rows(30)] == rows


@given(
    markdown_texts,
    st.integers(1, 40),
    st.sampled_from([Limits(0, NEVER, 1), Limits(15, NEVER, 4), Limits(40, NEVER, 10), Limits()]),
)
@settings(max_examples=60, deadline=None)
def test_cuts_change_nothing(text: str, size: int, limits: Limits) -> None:
    """A text shown piece by piece ends as the same text parsed once.

    But for cuts within paragraphs, which the limits here exclude.
    """
    assert shown(document(text, size, limits).rows(30)) == whole(text, 30)


@given(
    markdown_texts,
    st.integers(1, 40),
    st.sampled_from([Limits(0, 10, 1), Limits(15, 20, 4), Limits(40, 50, 10)]),
)
@settings(max_examples=60, deadline=None)
def test_any_chunking_gives_the_same_rows(text: str, size: int, limits: Limits) -> None:
    """Cuts within paragraphs included: they follow from the text, not from its pieces."""
    chunked, at_once = document(text, size, limits), document(text, NEVER, limits)
    for width in (30, 7):
        assert shown(chunked.rows(width)) == shown(at_once.rows(width))
    assert chunked.code_blocks() == at_once.code_blocks()
    assert chunked.text == text


@given(markdown_texts, st.integers(2, 60))
@settings(max_examples=40, deadline=None)
def test_rows_fit_and_steer_no_terminal(text: str, width: int) -> None:
    """But for tables and indents that have less than two cells a column or text."""
    for row in document(text).rows(width):
        assert row.text.replace("\u200d", "").isprintable()
        narrow = cell_len(row.prefix.plain) > width - 2 or "│" in row.text or "┼" in row.text
        assert narrow or cell_len(row.text.rstrip()) <= width


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_changes_only_at_its_end(kind: str) -> None:
    """However long the open block is, one more token makes few rows anew: the others are the same
    objects as before."""
    text = source(kind, 5000)
    grown = MarkdownDocument()
    grown.append(text[:-4])
    before = list(grown.rows(78))
    grown.append(text[-4:])
    after = grown.rows(78)
    same = sum(a is b for a, b in zip(before, after, strict=False))
    assert len(after) > 200
    assert len(after) - same < 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_loses_nothing(kind: str) -> None:
    """Every letter and digit of the source is on the screen."""
    text = source(kind, 3000)
    rows = document(text, 300).rows(78)
    on_screen = sorted(c for row in rows for c in row.text if c.isalnum())
    assert on_screen == sorted(c for c in text if c.isalnum())


def test_a_paragraph_without_end_is_cut_between_words() -> None:
    text = " ".join(f"w{number}" for number in range(4000))
    rows = document(text, 50).rows(40)
    assert " ".join(row.text.strip() for row in rows) == text


def test_a_table_without_end_keeps_its_columns() -> None:
    lines = [f"| {number} | value {number} |" for number in range(1500)]
    rows = document("| n | v |\n|--:|:--|\n" + "\n".join(lines), 97).rows(40)
    assert len(rows) == 1502
    assert len({row.text.index("│") for row in rows if "│" in row.text}) == 1


def test_numbers_of_a_long_list_go_on() -> None:
    text = "\n".join(f"1. item {number}" for number in range(1500))
    rows = document(text, 61).rows(40)
    assert [row.text for row in rows] == [f"{n + 1}. item {n}" for n in range(1500)]


def test_code_of_any_length_is_one_block() -> None:
    lines = [f"x{number} = '''" for number in range(1500)]
    made = document("Look:\n\n- a\n\n  ```py\n  " + "\n  ".join(lines) + "\n  ```\n- b", 83)
    assert made.code_blocks() == [("py", "\n".join(lines))]
    assert made.rows(40)[-1].text == "• b"


def test_another_width_lays_all_out_again() -> None:
    made = document("word " * 20)
    assert [len(made.rows(width)) for width in (50, 25, 50)] == [2, 4, 2]
