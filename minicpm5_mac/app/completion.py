"""What the composer offers while a slash command or an `@file` is being typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from textual.fuzzy import FuzzySearch

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.attachments import mention_text, open_mention

SHOWN = 8
"""Candidates offered at once: a list of more is read slower than one more letter is typed."""

SCORED = 400
"""Candidates that are scored: enough to find the best, few enough for one keystroke."""


@dataclass(frozen=True)
class Candidate:
    """insert: what replaces the typed text; label and note: what is shown."""

    insert: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Completion:
    """Candidates, best first, for the line's text from column `start` to the caret."""

    start: int
    candidates: tuple[Candidate, ...]


def wants_files(line_to_caret: str) -> bool:
    """Whether a list of files is needed to complete this line."""
    return open_mention(line_to_caret) is not None


def complete(line_to_caret: str, first_line: bool, files: Sequence[str]) -> Completion | None:
    """What could stand at the caret, or None where nothing is being completed.

    first_line: the caret is in the composer's first line, the only place of a slash command.
    files: paths that an `@` may name.
    """
    mention = open_mention(line_to_caret)
    if mention is not None:
        paths = _ranked(mention.typed, files)
        found = tuple(Candidate(mention_text(path) + " ", path) for path in paths)
        return Completion(mention.start, found) if found else None
    if not first_line or not line_to_caret.startswith("/") or " " in line_to_caret:
        return None
    by_name = {command.name: command for command in slash_commands.COMMANDS}
    names = _ranked(line_to_caret[1:], tuple(by_name), shown=len(by_name))
    offered = tuple(
        Candidate(
            f"/{name} " if by_name[name].argument else f"/{name}",
            f"/{name} {by_name[name].argument}".rstrip(),
            by_name[name].description,
        )
        for name in names
    )
    return Completion(0, offered) if offered else None


def _ranked(typed: str, texts: Sequence[str], shown: int = SHOWN) -> list[str]:
    if not typed:
        return list(texts[:shown])
    in_order = re.compile(".*?".join(map(re.escape, typed)), re.IGNORECASE)
    possible = islice((text for text in texts if in_order.search(text)), SCORED)
    search = FuzzySearch(case_sensitive=False)
    scored = [(search.match(typed, text)[0], text) for text in possible]
    found = [(score, text) for score, text in scored if score > 0]
    # The file's own name counts more than its folders; of equals the shorter one is meant.
    found.sort(key=lambda pair: (not _starts(typed, pair[1]), -pair[0], len(pair[1])))
    return [text for _, text in found[:shown]]


def _starts(typed: str, text: str) -> bool:
    return text.rpartition("/")[2].lower().startswith(typed.lower())
