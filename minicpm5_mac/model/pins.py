"""Which commit of a hub repository is in use: chosen once, kept until `models pull` asks again."""

from __future__ import annotations

import json
from pathlib import Path

from filelock import FileLock

from minicpm5_mac import locations
from minicpm5_mac.whole_file import write_whole


def pinned_revision(repository: str) -> str | None:
    """The commit in use, or None where the repository was never fetched."""
    revision = _read().get(repository)
    return revision if isinstance(revision, str) else None


def pin_revision(repository: str, revision: str | None) -> None:
    """Record the commit in use; None forgets the repository."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        pins = _read()
        pins.pop(repository, None)
        if revision is not None:
            pins[repository] = revision
        text = json.dumps(pins, indent=2, sort_keys=True) + "\n"
        write_whole(path, text.encode())


def _path() -> Path:
    return locations.data_dir() / "model-revisions.json"


def _read() -> dict[str, str]:
    try:
        pins = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return pins if isinstance(pins, dict) else {}
