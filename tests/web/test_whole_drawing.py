"""Whether an app has drawn all of itself in a new size; and that a page that comes back gets it."""

from __future__ import annotations

import asyncio
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_chat import socket_page, spend

from minicpm5_mac.web.server import ChatServer
from minicpm5_mac.web.whole_drawing import WholeDrawing

END = b"\x1b[?2026l"


def rows(*numbers: int) -> bytes:
    return b"".join(b"\x1b[%d;1H\x1b[1;31mwords" % number for number in numbers)


def drawn(*pieces: bytes) -> bool:
    """In a size of four rows."""
    drawing = WholeDrawing(4)
    for piece in pieces:
        drawing.read(piece)
    return drawing.done.is_set()


WHOLE = rows(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        (WHOLE + END, True),
        (WHOLE, False),  # it may go on to a fifth
        (WHOLE + rows(1), True),  # an app without synchronized output
        (rows(1, 2, 3, 4, 5) + END, False),  # the size before
        (rows(1, 2, 3, 4, 5) + END + WHOLE + END, True),
        (rows(1, 2) + END, False),
        (rows(1, 2) + END + rows(3, 4) + END, False),
        (rows(2, 3, 4) + END, False),
        (rows(1) + b"\x1b[1;3Hmore" + rows(2, 3, 4) + END, True),  # a row may come in parts
        (rows(1) + WHOLE + END, True),
    ],
)
def test_a_whole_drawing_is_all_rows_and_no_more(written: bytes, whole: bool):
    assert drawn(written) is whole


@given(st.lists(st.sampled_from([WHOLE, END, rows(5), rows(1, 2), b"\x1b[2;7H"])), st.data())
def test_a_cut_anywhere_changes_nothing(words: list[bytes], data: st.DataObject):
    text = b"".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert drawn(*pieces) is drawn(text)


# Draws its first row all the time, as an app does when a reply comes, and looks at its size twice
# a second, as a busy one does; all of it only when that has changed.
BUSY_APP = r"""
import os, shutil, time
size, looked = None, 0
while True:
    os.write(1, b"\x1b[?2026h\x1b[1;1Hpart\x1b[?2026l")
    if time.monotonic() - looked > 0.5:
        looked = time.monotonic()
        before, size = size, shutil.get_terminal_size()
        if size != before:
            drawn = b"".join(b"\x1b[%d;1Hrow %d of %d" % (row, row, size.lines)
                             for row in range(1, size.lines + 1))
            os.write(1, b"\x1b[?2026h" + drawn + b"\x1b[?2026l")
    time.sleep(0.01)
"""


async def test_a_page_that_comes_back_gets_all_of_a_busy_app():
    # What a shell has exported of its own size is not the page's.
    server = ChatServer((sys.executable, "-c", BUSY_APP), {"COLUMNS": "80", "LINES": "24"})
    await server.start()
    try:
        address, cookie = server.link.partition("?")[0], await asyncio.to_thread(spend, server.link)
        async with socket_page(address, cookie) as page:
            await page.until(lambda page: b"row 30 of 30" in page.screen)
        for _ in range(3):
            async with socket_page(address, cookie) as page:
                await page.until(lambda page: b"row 30 of 30" in page.screen)
                assert b"row 1 of 30" in page.screen
    finally:
        await server.close()
