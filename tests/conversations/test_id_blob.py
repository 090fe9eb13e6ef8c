"""Recorded ids survive the store exactly, take little room, and are never worth an error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.conversations import id_blob
from minicpm5_mac.messages import TurnIds

ids = st.lists(st.integers(0, 2**32 - 1)).map(tuple)


@given(st.builds(TurnIds, st.text(), st.booleans(), ids, ids))
def test_what_is_packed_comes_back(recorded: TurnIds):
    assert id_blob.unpack(id_blob.pack(recorded)) == recorded


@given(st.none() | st.binary() | st.binary().map(lambda data: bytes([id_blob.VERSION]) + data))
def test_anything_else_is_no_ids(blob: bytes | None):
    assert id_blob.unpack(blob) is None


def test_a_cut_blob_is_no_ids():
    blob = id_blob.pack(TurnIds("f", True, tuple(range(100)), (1, 2)))
    assert id_blob.unpack(blob[:-5]) is None


def test_it_takes_less_room_than_json_would():
    recorded = TurnIds("f", True, tuple(n * 7919 % 130_560 for n in range(4000)), ())
    assert len(id_blob.pack(recorded)) < 4 * 4000 + 100
