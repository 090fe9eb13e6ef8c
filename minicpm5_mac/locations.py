"""Where this program keeps its files, in the platform's own folders.

macOS: ~/Library/Application Support/minicpm5-mac, ~/Library/Caches/minicpm5-mac and
~/Library/Logs/minicpm5-mac; Linux: the XDG folders. `MINICPM5_MAC_HOME` moves all of them
below one folder: for tests, and for a portable installation.
"""

from __future__ import annotations

import os
from pathlib import Path

APP = "minicpm5-mac"
HOME_VARIABLE = "MINICPM5_MAC_HOME"


def _place(kind: str) -> Path:
    moved = os.environ.get(HOME_VARIABLE)
    if moved:
        return Path(moved).expanduser() / kind
    import platformdirs  # deferred: `--version` needs none of this

    folders = {
        "config": platformdirs.user_config_dir,
        "data": platformdirs.user_data_dir,
        "cache": platformdirs.user_cache_dir,
        "log": platformdirs.user_log_dir,
    }
    return Path(folders[kind](APP, appauthor=False))


def config_file() -> Path:
    """The TOML file with the user's defaults; it may not exist."""
    return _place("config") / "config.toml"


def data_dir() -> Path:
    """What must not be lost: conversations, undo copies, saved approvals."""
    return _place("data")


def cache_dir() -> Path:
    """What can be made or downloaded again: imported models, measurements."""
    return _place("cache")


def log_dir() -> Path:
    """Log files of the app and of the model process."""
    return _place("log")
