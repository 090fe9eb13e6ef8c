"""Files named in a message as `@path`: finding the names, listing what could be named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_LISTED = 20_000
"""Files offered for completion; a home folder with more would only slow the list down."""
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "target", "build", "dist"})

# An at sign that starts a word, then a quoted path or a run without blanks.
_MENTION = re.compile(r'(?:(?<=\s)|^)@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s"]+))')
# The same while it is being typed: the caret is at the end.
_OPEN_MENTION = re.compile(r'(?:(?<=\s)|^)@(?:"(?P<quoted>[^"\n]*)|(?P<plain>[^\s"]*))$')
# What follows a path in a sentence and is not part of it.
_TRAILING = ".,;:!?)]}，。；：！？）】"


@dataclass(frozen=True)
class OpenMention:
    """A mention that is being typed. start: where its at sign is in the line."""

    start: int
    typed: str


def open_mention(line_to_caret: str) -> OpenMention | None:
    """The mention that ends at the caret, if one does."""
    found = _OPEN_MENTION.search(line_to_caret)
    if found is None:
        return None
    return OpenMention(found.start(), found["quoted"] or found["plain"] or "")


def mention_text(path: str) -> str:
    """`path` as a mention, quoted where it has to be."""
    return f'@"{path}"' if re.search(r"\s", path) or path[-1:] in _TRAILING else f"@{path}"


def mentioned_files(text: str, folder: Path) -> list[str]:
    """The paths in `text` that are files, relative ones from `folder`, in order, each once.

    A mention of no file (`@someone`) is ordinary text and left alone.
    """
    found: dict[str, None] = {}
    for mention in _MENTION.finditer(text):
        written = mention["quoted"] or mention["plain"]
        candidates = [written]
        if mention["plain"] and written.rstrip(_TRAILING) not in ("", written):
            candidates.append(written.rstrip(_TRAILING))
        for path in candidates:
            if _is_file(path, folder):
                found[path] = None
                break
    return list(found)


def _is_file(path: str, folder: Path) -> bool:
    try:
        return (folder / Path(path).expanduser()).is_file()
    except (OSError, RuntimeError, ValueError):  # too long, an unknown user, no name at all
        return False


def files_below(folder: Path, limit: int = MAX_LISTED) -> list[str]:
    """Paths of files below `folder`, relative, shallow ones first; hidden ones are left out."""
    return [path for _, path in zip(range(limit), _walk(folder), strict=False)]


def _walk(folder: Path) -> Iterator[str]:
    level = [""]
    while level:
        below: list[str] = []
        for prefix in level:
            try:
                entries = sorted(os.scandir(folder / prefix), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{prefix}{entry.name}/")
                elif entry.is_file():
                    yield f"{prefix}{entry.name}"
        level = below
