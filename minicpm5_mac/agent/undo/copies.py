"""File contents kept by their digest, in the app's own data."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Collection
from pathlib import Path

CHUNK_BYTES = 1 << 20


class Copies:
    """A folder of contents; each is kept once, however many files had it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def keep(self, descriptor: int) -> tuple[str, int]:
        """Copy what an open file holds. Returns its SHA-256 and its size in bytes."""
        digest = hashlib.sha256()
        size = 0
        made, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
        try:
            with os.fdopen(made, "wb") as copy:
                while chunk := os.read(descriptor, CHUNK_BYTES):
                    digest.update(chunk)
                    copy.write(chunk)
                    size += len(chunk)
            os.replace(name, self._folder / digest.hexdigest())
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        return digest.hexdigest(), size

    def path(self, digest: str) -> Path:
        """Where the content of that digest is, if it is kept."""
        return self._folder / digest

    def drop_all_but(self, wanted: Collection[str]) -> None:
        """Remove the contents that nothing refers to any more."""
        for path in self._folder.iterdir():
            if path.name not in wanted:
                path.unlink(missing_ok=True)
