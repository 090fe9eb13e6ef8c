"""Search: all words, anywhere, in any case and any script; every character stands for itself."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicpm5_mac.conversations.search import SNIPPET, fold, search
from minicpm5_mac.conversations.store import ConversationStore


def add(store: ConversationStore, *messages: str, title: str = "some title") -> str:
    made = store.create(title).id
    parent = None
    for text in messages:
        parent = store.messages.add(made, parent, "user", text)
    return made


def found(store: ConversationStore, query: str) -> list[str]:
    return [hit.conversation.id for hit in search(store, query)]


@pytest.mark.parametrize(
    ("text", "query", "hit"),
    [
        ("The capital of France", "FRANCE", True),
        ("The capital of France", "ranc", True),
        ("The capital of France", "france capital", True),
        ("The capital of France", "france berlin", False),
        ("北京是中国的首都", "首都", True),
        ("北京是中国的首都", "京", True),
        ("北京是中国的首都", "东京", False),
        ("ÜBER STRASSE", "über straße", True),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("ＡＢＣ １２３", "abc 123", True),
        ("cafe\u0301", "café", True),
        ("100% sure", "100%", True),
        ("1000 sure", "100%", False),
        ("snake_case", "e_c", True),
        ("snakeXcase", "e_c", False),
        ('it\'s "quoted"', 'it\'s "quoted"', True),
        ("plain", "'", False),
        ("back\\slash", "\\", True),
        ("a*b", "*", True),
        ("plain", "*", False),
        ("x NEAR y", "near", True),
        ("x y", "x OR z", False),
        ("🦊 fox", "🦊", True),
        ("anything", "", False),
        ("anything", " \n\t", False),
    ],
)
def test_what_is_found(store: ConversationStore, text: str, query: str, hit: bool):
    made = add(store, "unrelated", text)
    assert found(store, query) == ([made] if hit else [])


def test_all_words_must_be_in_one_message(store: ConversationStore):
    add(store, "one", "two")
    assert found(store, "one two") == []


def test_titles_count_too(store: ConversationStore):
    made = add(store, "hello", title="Übersetzung")
    (hit,) = search(store, "übersetz")
    assert (hit.conversation.id, hit.message, hit.role) == (made, None, None)
    assert hit.snippet == "Übersetzung"
    assert hit.marks == ((0, 8),)


def test_every_branch_is_searched_and_the_newest_message_is_named(store: ConversationStore):
    made = store.create("x").id
    old = store.messages.add(made, None, "user", "a needle")
    store.messages.add(made, None, "user", "edited away")
    (hit,) = search(store, "needle")
    assert hit.message == old
    newer = store.messages.add(made, old, "assistant", "another needle")
    (hit,) = search(store, "needle")
    assert (hit.message, hit.role) == (newer, "assistant")


def test_the_one_used_last_comes_first_and_the_limit_holds(store: ConversationStore):
    made = [add(store, f"needle {number}") for number in range(5)]
    assert found(store, "needle") == made[::-1]
    assert [hit.conversation.id for hit in search(store, "needle", limit=2)] == made[:2:-1]


def test_the_snippet_shows_the_place_and_marks_the_words(store: ConversationStore):
    add(
        store, "padding " * 100 + "here is the\n\x1b[31mNeedle\u202e in a haystack " + "more " * 100
    )
    (hit,) = search(store, "needle hay")
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) <= SNIPPET + 2
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Needle", "hay"]
    assert not [c for c in hit.snippet if unicodedata.category(c) in ("Cc", "Cf")]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1), st.data())
def test_any_part_of_a_text_finds_it(store: ConversationStore, text: str, data: st.DataObject):
    made = add(store, text)
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    hits = {hit.conversation.id: hit for hit in search(store, part, limit=1000)}
    words = fold(part).split()
    if words and all(word in fold(text) for word in words):  # a cut cluster may fold differently
        assert made in hits
        for hit in hits.values():
            assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.marks)
    store.delete(made)
