"""Search in titles and messages: every word, anywhere in it, whatever its case.

It reads the texts, newest conversation first, and stops at the limit. An index of words would
miss parts of words and, in Chinese or Japanese, words as such.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import msgspec

from minicpm5_mac.conversations.records import Conversation
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.conversations.title import clean_title
from minicpm5_mac.messages import Role

SNIPPET = 120
"""Characters of a snippet, at most."""

_LEAD = 30


class SearchHit(msgspec.Struct, frozen=True):
    """A conversation in which all words were found, in its title or together in one message.

    message, role: the newest such message; None where only the title has them.
    snippet: one line around the first word found in it. marks: (start, end) of words in it.
    """

    conversation: Conversation
    message: int | None
    role: Role | None
    snippet: str
    marks: tuple[tuple[int, int], ...]


def search(store: ConversationStore, query: str, limit: int = 50) -> tuple[SearchHit, ...]:
    """The conversations that have all words of `query`, the one used last first.

    Words are separated by blanks; every other character stands for itself. Compatibility forms
    (full-width letters, ligatures) and case make no difference. No words find nothing.
    """
    words = tuple(dict.fromkeys(fold(query).split()))
    hits: list[SearchHit] = []
    if not words:
        return ()
    for conversation in store.list():
        hit = _hit(store, conversation, words)
        if hit is not None:
            hits.append(hit)
            if len(hits) == limit:
                break
    return tuple(hits)


def fold(text: str) -> str:
    """Text as it is compared: one form for what readers take for the same."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text.casefold()).casefold()


def _hit(
    store: ConversationStore, conversation: Conversation, words: Sequence[str]
) -> SearchHit | None:
    for message, role, text in store.messages.texts(conversation.id):
        folded = fold(text)
        if all(word in folded for word in words):
            snippet, marks = _snippet(text, words)
            return SearchHit(conversation, message, role, snippet, marks)
    folded = fold(conversation.title)
    if all(word in folded for word in words):
        snippet, marks = _snippet(conversation.title, words)
        return SearchHit(conversation, None, None, snippet, marks)
    return None


def _snippet(text: str, words: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    line = clean_title(text)
    found = _places(line, words)
    start = max(0, found[0][0] - _LEAD) if found else 0
    if start and " " in line[start : start + _LEAD]:
        start = line.index(" ", start) + 1
    before = "…" if start else ""
    after = "…" if len(line) > start + SNIPPET else ""
    shift = len(before) - start
    end = start + SNIPPET
    marks = tuple((at + shift, min(to, end) + shift) for at, to in found if start <= at < end)
    return f"{before}{line[start:end]}{after}", marks


def _places(line: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where the words stand, in order and without overlap; folding may change lengths."""
    folded, origin = _folded_with_origin(line)
    places: list[tuple[int, int]] = []
    for word in words:
        at = folded.find(word)
        while at >= 0:
            places.append((origin[at], origin[at + len(word) - 1] + 1))
            at = folded.find(word, at + len(word))
    places.sort()
    apart: list[tuple[int, int]] = []
    for place in places:
        if not apart or place[0] >= apart[-1][1]:
            apart.append(place)
    return apart


def _folded_with_origin(line: str) -> tuple[str, list[int]]:
    """Folded text, and for each of its characters the index in `line` it came from."""
    pieces: list[str] = []
    origin: list[int] = []
    start = 0
    for end in range(1, len(line) + 1):
        # A combining mark is folded together with what it stands on.
        if end < len(line) and unicodedata.combining(line[end]):
            continue
        piece = fold(line[start:end])
        pieces.append(piece)
        origin += [start] * (len(piece) - 1) + [end - 1] * bool(piece)
        start = end
    return "".join(pieces), origin
