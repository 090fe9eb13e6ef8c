"""Empty folders that hold the place of protected names while a Linux sandbox runs.

bubblewrap can only pin a name (mount something read-only on it) that exists on the host, and
makes it when it does not; `--ro-bind-try` skips it, and the name can then be created. So each
absent name is made here, as an empty folder (git on the host does not list those), and removed
after the run, unless something was put into it. Runs overlap, and removing a folder another
run has mounted would take that run's pin away (the kernel detaches it): a ledger below the
cache folder says who relies on what, and an entry whose writer is gone counts for nothing.
macOS needs none of this: a profile names paths that need not exist.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from minicpm5_mac import locations


class Placeholders:
    """The placeholders one run relies on; `remove` gives them back. Use once."""

    def __init__(self, wanted: Iterable[Path]) -> None:
        """Make a folder for each absent path of `wanted`.

        Of the paths that exist, those another live run made are relied on as well.
        Raises OSError when a folder cannot be made.
        """
        self._ledger = _ledger_folder()
        self._entry = self._ledger / f"{uuid4().hex}.json"
        self._held = os.open(self._entry, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.paths: tuple[Path, ...] = ()
        try:
            with _locked(self._ledger):
                fcntl.flock(self._held, fcntl.LOCK_EX)
                others = _relied_on_by_the_living(self._ledger, apart_from=self._entry)
                relied = []
                for path in wanted:
                    if os.path.lexists(path):
                        if path in others:
                            relied.append(path)
                        continue
                    os.mkdir(path, 0o755)
                    relied.append(path)
                    self.paths = tuple(relied)
                self.paths = tuple(relied)
                os.write(self._held, json.dumps([str(path) for path in relied]).encode())
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Take away what only this run relied on; idempotent."""
        if self._held < 0:
            return
        with _locked(self._ledger):
            others = _relied_on_by_the_living(self._ledger, apart_from=self._entry)
            _remove_empty(set(self.paths) - others)
            self._entry.unlink(missing_ok=True)
            os.close(self._held)
            self._held = -1


def sweep() -> None:
    """Remove what runs of killed apps left behind."""
    ledger = _ledger_folder()
    with _locked(ledger):
        _relied_on_by_the_living(ledger, apart_from=None)


def _relied_on_by_the_living(ledger: Path, apart_from: Path | None) -> set[Path]:
    """The other live runs' placeholders; what dead runs left is removed on the way."""
    living: set[Path] = set()
    dead: set[Path] = set()
    for entry in ledger.glob("*.json"):
        if entry == apart_from:
            continue
        descriptor = os.open(entry, os.O_RDWR | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                living.update(_paths_in(descriptor))
            else:
                dead.update(_paths_in(descriptor))
                entry.unlink()
        finally:
            os.close(descriptor)
    _remove_empty(dead - living)
    return living


def _paths_in(descriptor: int) -> set[Path]:
    try:
        return {Path(path) for path in json.loads(os.pread(descriptor, 1 << 20, 0) or b"[]")}
    except ValueError:
        return set()  # its writer was killed in the middle of the line


def _remove_empty(paths: Iterable[Path]) -> None:
    for path in paths:
        # Not empty: the user made something of it meanwhile. It is theirs.
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _ledger_folder() -> Path:
    folder = locations.cache_dir() / "sandbox" / "placeholders"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


@contextlib.contextmanager
def _locked(ledger: Path) -> Iterator[None]:
    descriptor = os.open(ledger / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
