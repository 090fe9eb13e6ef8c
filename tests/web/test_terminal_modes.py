"""What a new terminal is told, so that it is in the modes the app believes it to be in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.web.terminal_modes import TerminalModes


def restored(*pieces: bytes) -> bytes:
    modes = TerminalModes()
    for piece in pieces:
        modes.read(piece)
    return modes.restore()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", b"\x1b[?25l"),
        (b"\x1b[?25h", b"\x1b[?25h"),
        (b"\x1b[?1049h\x1b[?25l", b"\x1b[?1049h\x1b[?25l"),
        (b"\x1b[?1049h\x1b[?1049l", b"\x1b[?25l"),
        (b"\x1b[?1000;1006h\x1b[?1000l", b"\x1b[?1006h\x1b[?25l"),
        (b"\x1b[?2026h", b"\x1b[?25l"),
        (b"\x1b]0;one\x07text\x1b]2;two\x1b\\", b"\x1b[?25l\x1b]2;two\x07"),
        ("\x1b]2;你好\x07".encode(), b"\x1b[?25l" + "\x1b]2;你好\x07".encode()),
        (b"[?1049h ?1000h \x1b[4h", b"\x1b[?25l"),
    ],
)
def test_modes_that_are_on_and_the_last_title(written: bytes, expected: bytes):
    assert restored(written) == expected


WORDS = st.sampled_from(
    [
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[?1000;1006h",
        b"\x1b[?1006l",
        b"\x1b[?25h",
        b"\x1b[?2026h",
        b"\x1b]2;a title\x07",
        b"\x1b]0;another\x1b\\",
        b"\x1b[1;31m",
        b"\x1b[3;4H",
        "你好".encode(),
        b"\x1b",
        b"?1h",
    ]
)


@given(st.lists(WORDS), st.data())
def test_a_cut_anywhere_changes_nothing(words: list[bytes], data: st.DataObject):
    text = b"".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert restored(*pieces) == restored(text)
