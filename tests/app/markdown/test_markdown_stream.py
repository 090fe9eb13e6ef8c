"""MarkdownStream in a running app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from minicpm5_mac.app.markdown import MarkdownStream, PlainText
from minicpm5_mac.app.markdown.rows_view import RowsView


class ViewApp(App[None]):
    def __init__(self, view: RowsView) -> None:
        super().__init__()
        self.view = view
        self.opened: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        self.opened.append(url)


@asynccontextmanager
async def running(view: RowsView, width: int = 40) -> AsyncIterator[Pilot[None]]:
    async with ViewApp(view).run_test(size=(width, 12)) as pilot:
        await pilot.pause()
        yield pilot


def screen(view: RowsView) -> list[str]:
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


async def test_text_is_shown_without_being_finished() -> None:
    view = MarkdownStream()
    async with running(view) as pilot:
        view.append("# Ti")
        view.append("tle\n\nte")
        await pilot.pause(0.3)
        assert screen(view) == ["Title", "", "te"]
        view.append("xt")
        await pilot.pause(0.3)
        assert screen(view) == ["Title", "", "text"]


async def test_text_given_before_the_widget_is_mounted_is_shown() -> None:
    view = MarkdownStream()
    view.append("- a\n")
    view.append("- b")
    async with running(view):
        view.finish()
        assert screen(view)[:2] == ["• a", "• b"]
        assert view.text == "- a\n- b"


async def test_a_resize_draws_the_text_once_at_the_new_width() -> None:
    view = MarkdownStream("word " * 12)
    async with running(view) as pilot:
        assert len(screen(view)) == 2
        await pilot.resize_terminal(20, 12)
        await pilot.pause()
        assert [line for line in screen(view) if line] == ["word word word word"] * 3


async def test_all_of_a_wrapped_text_is_selected_as_it_was_written() -> None:
    view = MarkdownStream("one two three four five six\n\n```py\n\tx = 1\n```")
    async with running(view, 12):
        text = view.get_selection(Selection(None, None))
        assert text == ("one two three four five six\n\npy\n    x = 1", "\n")


async def test_a_part_is_selected_by_the_mouse() -> None:
    view = MarkdownStream("one two\nthree 中文 four")
    async with running(view) as pilot:
        await pilot.mouse_down(view, offset=(4, 0))
        await pilot.hover(view, offset=(6, 1))
        await pilot.mouse_up(view, offset=(6, 1))
        assert pilot.app.screen.get_selected_text() == "two\nthree 中"


async def test_selection_is_drawn_and_goes_again() -> None:
    view = MarkdownStream("one two")
    async with running(view) as pilot:
        plain = view.render_line(0)
        pilot.app.screen.selections = {view: Selection(Offset(0, 0), Offset(3, 0))}
        await pilot.pause()
        marked = view.render_line(0)
        assert marked.text == plain.text
        assert marked != plain
        pilot.app.screen.clear_selection()
        await pilot.pause()
        assert view.render_line(0) == plain


@pytest.mark.parametrize(
    ("target", "opened"),
    [
        ("https://example.com", ["https://example.com"]),
        ("mailto:a@b.c", ["mailto:a@b.c"]),
        ("file:///etc/passwd", []),
        ("x-man-page://ls", []),
    ],
)
async def test_a_click_opens_links_of_the_web_alone(target: str, opened: list[str]) -> None:
    view = MarkdownStream(f"[link]({target})")
    app = ViewApp(view)
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.hover(view, offset=(1, 0))
        assert app.opened == []
        await pilot.click(view, offset=(1, 0))
        assert app.opened == opened


async def test_no_control_character_reaches_the_terminal() -> None:
    raw = "a\x1b]0;title\x07 `\x1b[2J` \x9b31m \u202e"
    view = MarkdownStream(raw + "\n\n```\n" + raw + "\n```\n\n|" + raw + "|\n|-|")
    async with running(view):
        text = "".join(screen(view))
        assert text.isprintable()
        assert text.count("␛") == 6


async def test_code_is_coloured_once_there_is_time() -> None:
    view = MarkdownStream("```python\ndef f(): return 1\n```")
    async with running(view) as pilot:
        before = len({str(segment.style) for segment in view.render_line(1)})
        await pilot.pause(0.4)
        after = len({str(segment.style) for segment in view.render_line(1)})
        assert after > 2
        assert after >= before


async def test_code_is_coloured_while_text_keeps_coming() -> None:
    view = MarkdownStream()
    async with running(view) as pilot:
        view.append("```python\n")
        for number in range(8):
            view.append(f"x = {number}\n")
            await pilot.pause(0.1)
        assert len({str(segment.style) for segment in view.render_line(1)}) > 2


async def test_another_theme_is_another_look_of_the_same_rows() -> None:
    view = MarkdownStream("# Title `code`")
    async with running(view) as pilot:
        dark = view.render_line(0)
        pilot.app.theme = "textual-light"
        await pilot.pause()
        light = view.render_line(0)
        assert light.text == dark.text
        assert [s.style for s in light] != [s.style for s in dark]


async def test_plain_text_is_not_marked_up() -> None:
    view = PlainText("# not a *title*\n\t[b]x[/b]\x1b")
    async with running(view):
        assert screen(view)[:2] == ["# not a *title*", "    [b]x[/b]␛"]
