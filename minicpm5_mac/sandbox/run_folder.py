"""The folders a run has for itself: its temporary folder, and the place for spilled output."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
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
    """Remove it whatever the run left inside: folders without permissions, links, deep trees.

    What even so cannot be removed stays; it holds nothing but the run's own leavings.
    """
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        # Both programs walk trees of any depth and follow no link on the way.
        for command in (("/bin/chmod", "-R", "u+rwx"), ("/bin/rm", "-rf")):
            subprocess.run((*command, "--", str(folder)), capture_output=True, check=False)


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
