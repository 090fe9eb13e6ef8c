"""Nothing that was typed is forgotten before it is a stored message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.app.unsent import Unsent

TEXT = st.text(min_size=1).filter(str.strip)


@given(TEXT, TEXT, TEXT)
def test_what_is_sent_waits_or_is_written_is_kept(sending: str, waiting: str, composer: str):
    unsent = Unsent(sending=sending)
    unsent.wait(waiting)
    kept = unsent.all(composer)
    assert sending in kept
    assert waiting in kept
    assert composer in kept


@given(TEXT, TEXT, TEXT)
def test_an_edit_keeps_the_draft_of_before_it(draft: str, message: str, other: str):
    unsent = Unsent()
    unsent.begin_edit(1, message, draft)
    unsent.begin_edit(2, other, message)
    assert unsent.all(other) == draft
    assert f"{other} changed" in unsent.all(f"{other} changed")
    assert unsent.end_edit() == draft
    assert unsent == Unsent()
    assert unsent.end_edit() == ""


def test_messages_that_wait_go_out_as_one():
    unsent = Unsent()
    unsent.wait("one")
    unsent.wait("two")
    assert unsent.take_waiting() == "one\n\ntwo"
    assert unsent.take_waiting() == ""
