"""The log of the server and the window."""

from __future__ import annotations

import logging
import logging.handlers
import os
from pathlib import Path

from minicpm5_mac import locations

LOG_BYTES = 1_000_000


def web_log() -> Path:
    """Where the server writes what it has to say."""
    return locations.log_dir() / "web.log"


def log_to_file() -> Path:
    """Send our log records and aiohttp's to the file. Raises OSError where there can be none."""
    path = web_log()
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("minicpm5_mac", "aiohttp", "pywebview"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    return path


def redirect_output(path: Path) -> None:
    """Standard output and error of this process go to `path`, whoever writes to them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(target, descriptor)
    os.close(target)
