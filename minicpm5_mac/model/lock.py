"""One process at a time fetches or imports a model; the others wait and say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from minicpm5_mac import locations
from minicpm5_mac.events import ModelStage
from minicpm5_mac.model.progress import OnEvent


@contextmanager
def one_at_a_time(name: str, on_event: OnEvent) -> Iterator[None]:
    """Hold the lock of this name. The lock goes with the process, however that ends."""
    folder = locations.cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / (re.sub(r"[^A-Za-z0-9._-]", "--", name) + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_event(ModelStage("resolving", f"waiting: another minicpm5-mac is at {name}"))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
