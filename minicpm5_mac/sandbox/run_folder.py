"""The folders a run has for itself: its temporary folder, and the place for spilled output."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from minicpm5_mac import locations

PREFIX = "minicpm5-run-"
SPILL_KEPT_SECONDS = 24 * 3600.0


def make_run_folder() -> Path:
    """A new 0700 folder outside every workspace, resolved; HOME of the run is `home` in it."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
    (folder / "home").mkdir(mode=0o700)
    return folder


def remove_run_folder(folder: Path) -> None:
    """Remove it whatever the run left inside: folders without permissions, links, many files."""

    def retry(function, path, _error) -> None:
        # rmtree never follows links; a folder the run made unreadable is opened up and retried.
        with contextlib.suppress(OSError):
            parent = os.path.dirname(path)
            for each in (parent, path):
                if Path(each).is_relative_to(folder) and stat.S_ISDIR(os.lstat(each).st_mode):
                    os.chmod(each, 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                function(path)

    shutil.rmtree(folder, onerror=retry)


def open_spill() -> tuple[Path, BinaryIO]:
    """A new file for output that outgrew what the model is shown; app-private, 0600."""
    folder = locations.cache_dir() / "sandbox" / "output"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _drop_old(folder)
    descriptor, name = tempfile.mkstemp(prefix="output-", suffix=".txt", dir=folder)
    return Path(name), os.fdopen(descriptor, "wb")


def _drop_old(folder: Path) -> None:
    oldest = time.time() - SPILL_KEPT_SECONDS
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
