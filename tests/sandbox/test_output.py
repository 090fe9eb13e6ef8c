"""Output is bounded, counted exactly, and can go to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.sandbox.output import OutputKeeper, is_binary, plain_text
from minicpm5_mac.sandbox.policy import Limits

SMALL = Limits(output_head_bytes=8, output_tail_bytes=24, spill_bytes=100)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def spill(tmp_path):
    def open_it():
        path = tmp_path / "spill"
        return path, path.open("wb")

    return open_it


def keep(spill, chunks, limits=SMALL):
    keeper = OutputKeeper(limits, spill)
    for chunk in chunks:
        keeper.add(chunk)
    return keeper.kept()


@given(st.lists(st.binary(min_size=1, max_size=70), max_size=12))
def test_head_and_tail_are_the_ends_and_the_count_is_exact(tmp_path_factory, chunks):
    path = tmp_path_factory.mktemp("spill") / "spill"
    kept = keep(lambda: (path, path.open("wb")), chunks)
    whole = b"".join(chunks)
    assert kept.total == len(whole)
    assert kept.head == whole[:8]
    assert kept.tail == whole[8:][-24:]
    assert kept.omitted == max(0, len(whole) - 32)
    assert (kept.spill is not None) == (len(whole) > 32)
    if kept.spill is not None:
        assert kept.spill.read_bytes() == whole[:100]
        assert kept.spilled == min(100, len(whole))


def test_memory_does_not_grow_with_the_output(spill):
    keeper = OutputKeeper(Limits(), spill)
    for _ in range(100):
        keeper.add(b"x" * 65536)
        assert keeper._tail_size <= 24 * 1024 + 65536
    assert keeper.kept().total == 6553600


def test_omitted_bytes_are_named(spill):
    text = keep(spill, [b"A" * 8, b"b" * 100, b"C" * 24]).text()
    assert text.startswith("A" * 8)
    assert text.endswith("C" * 24)
    assert "100 bytes" in text


HOSTILE = {
    "clipboard": b"a\x1b]52;c;aGk=\x07b",
    "clipboard, string terminator": b"a\x1b]52;c;aGk=\x1b\\b",
    "title": b"a\x1b]0;evil\x07b",
    "colour": b"a\x1b[31mb",
    "cursor": b"a\x1b[2J\x1b[Hb",
    "device control": b"a\x1bP+q544e\x1b\\b",
    "application command": b"a\x1b_Gx\x1b\\b",
    "eight bit CSI": "a\x9b31mb".encode(),
    "eight bit OSC": "a\x9d52;c;x\x9cb".encode(),
    "charset": b"a\x1b(0b",
    "bell and backspace": b"a\x07\x08b",
    "delete": b"a\x7fb",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_control_sequences_vanish_whole(data):
    assert plain_text(data) == "ab"


@pytest.mark.parametrize("data", [b"a\x1b]52;c;aGk=", b"a\x1b[3", b"a\x1b"])
def test_a_sequence_cut_off_at_the_end_vanishes(data):
    assert "\x1b" not in plain_text(data)
    assert plain_text(data).startswith("a")


@given(st.binary(max_size=300))
def test_nothing_that_steers_a_terminal_is_left(data):
    assert not CONTROL.search(plain_text(data))


@given(st.text(alphabet="\x1b[]()0;cm\\\x07\x9b\x9dP_ab\n\r\t", max_size=60))
def test_look_alikes_of_sequences_leave_no_control(text):
    assert not CONTROL.search(plain_text(text))


def test_lines_and_tabs_stay():
    assert plain_text(b"a\tb\r\nc\rd\n") == "a\tb\nc\nd\n"


def test_bytes_that_are_no_text_become_replacement_characters():
    assert plain_text(b"caf\xe9") == "caf�"


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"plain", False),
        ("Größe 漢字 🦊".encode(), False),
        ("漢".encode()[:2], False),
        (b"\x1b[31mred\x1b[0m", False),
        (b"\x7fELF\x02\x01\x01\0\0", True),
        (bytes(range(128, 256)), True),
        (b"\x89PNG\r\n\x1a\n\0\0", True),
    ],
)
def test_binary_is_recognised(data, binary):
    assert is_binary(data) is binary


def test_binary_is_named_not_shown(spill):
    assert keep(spill, [b"\0\1\2"]).text() == "[3 bytes of binary output, not shown]"
