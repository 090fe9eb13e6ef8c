"""The colours of code: they come later than the text and end as those of the whole."""

from __future__ import annotations

import time

import pytest

from minicpm5_mac.app.markdown.code import CodeText

CODE = 'def f(x):\n\t"""Doc\n\n    string."""\n    return "a" + x  # why\n\n\nclass A: pass\n' * 5


def coloured(code: CodeText) -> list[object]:
    while code.unfinished:
        code.work(time.monotonic() + 1)
    return [code.spans(line) for line in range(len(code.lines))]


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_growing_code_ends_with_the_colours_of_the_whole(step: int) -> None:
    lines = CODE.split("\n")
    at_once = CodeText("python")
    at_once.replace(0, lines)
    at_once.closed = True
    grown = CodeText("python")
    for end in range(step, len(lines) + step, step):
        grown.replace(0, lines[:end])
        grown.work(time.monotonic())
    grown.closed = True
    assert coloured(grown) == coloured(at_once)


def test_a_line_that_changes_is_coloured_again() -> None:
    code = CodeText("python")
    code.replace(0, ["x = 1", "de"])
    coloured(code)
    code.replace(1, ["def f(): pass"])
    code.closed = True
    assert ("$text-accent" in str(coloured(code)[1])) is True


@pytest.mark.parametrize("language", ["", "no-such-language"])
def test_unknown_languages_stay_plain(language: str) -> None:
    code = CodeText(language)
    code.replace(0, ["x = 1"])
    assert not code.unfinished
    assert code.spans(0) is None


def test_tabs_are_shown_as_spaces_and_copied_as_tabs() -> None:
    code = CodeText("")
    code.replace(0, ["\tx"])
    assert (code.lines, code.source) == (["    x"], ["\tx"])
