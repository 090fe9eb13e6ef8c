"""The SQLite file: opened privately, shared between threads and processes, set aside if damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from minicpm5_mac.conversations.schema import migrate
from minicpm5_mac.failure import Failure

BUSY_SECONDS = 15.0
"""How long a write waits for another process's write; those take milliseconds."""

_SIDE_FILES = ("-wal", "-shm")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class Database:
    """One connection, which any thread may use: each statement or transaction has it alone.

    set_aside: where a damaged file was moved when this one was opened, else None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_aside: Path | None = None
        self._lock = threading.RLock()
        self._depth = 0
        with _said_clearly(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            if self._suspect.exists() and not _is_sound(path):
                self._move_aside()
            self._suspect.unlink(missing_ok=True)
            try:
                self._connection = _connect(path)
            except sqlite3.DatabaseError as error:
                if not _means_damage(error):
                    raise
                self._move_aside()
                self._connection = _connect(path)

    @property
    def _suspect(self) -> Path:
        # Left behind when damage shows in mid-work: the next start then reads the whole file,
        # which would be too slow to do at every start.
        return self.path.with_name(self.path.name + ".check")

    def _move_aside(self) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        target = self.path.with_name(f"{self.path.stem}.damaged-{stamp}{self.path.suffix}")
        number = 1
        while target.exists():
            number += 1
            target = target.with_name(
                f"{self.path.stem}.damaged-{stamp}-{number}{self.path.suffix}"
            )
        for ending in ("", *_SIDE_FILES):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{self.path}{ending}", f"{target}{ending}")
        self.set_aside = target

    def rows(self, statement: str, parameters: tuple = ()) -> list[sqlite3.Row]:
        """All rows of a query. Raises Failure when the file cannot be read."""
        with self._lock, self._guarded():
            return self._connection.execute(statement, parameters).fetchall()

    def row(self, statement: str, parameters: tuple = ()) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        with self._lock, self._guarded():
            return self._connection.execute(statement, parameters).fetchone()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. One inside another is part of the outer one.

        It takes the write lock at its start: what is read in it is still true when it writes.
        """
        with self._lock, self._guarded():
            self._depth += 1
            try:
                if self._depth > 1:
                    yield self._connection
                    return
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Close the file. May be called twice."""
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        with _said_clearly(self.path):
            try:
                yield
            except UnicodeEncodeError as error:
                raise Failure("This text cannot be stored: it is not valid Unicode.") from error
            except sqlite3.DatabaseError as error:
                if not _means_damage(error):
                    raise
                with contextlib.suppress(OSError):
                    self._suspect.touch()
                raise Failure(
                    f"The conversation file {self.path} is damaged ({error}).",
                    "Start minicpm5-mac again: it keeps the damaged file under another name and "
                    "begins a new one. `sqlite3 FILE .recover` may bring back what it held.",
                ) from error


def _connect(path: Path) -> sqlite3.Connection:
    # Made by us before SQLite does, for the mode: its side files take over the same one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    _refuse_cut_file(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    # Two processes that both create the file may each find it locked while they change its
    # mode; SQLite does not wait by itself here.
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _refuse_cut_file(path: Path) -> None:
    """Raises sqlite3.DatabaseError for a file that ends before a single page does.

    SQLite takes a file of a few bytes for an empty one and writes over it.
    """
    with path.open("rb") as file:
        head = file.read(100)
    if head and not (len(head) == 100 and head.startswith(b"SQLite format 3\x00")):
        error = sqlite3.DatabaseError("file is not a database")
        error.sqlite_errorname = "SQLITE_NOTADB"
        raise error


def _is_sound(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
            return connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except sqlite3.DatabaseError as error:
        return not _means_damage(error)


def _means_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(_DAMAGED)


@contextlib.contextmanager
def _said_clearly(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            advice = "Another minicpm5-mac has kept it busy for a long time: is one stuck?"
        elif name.startswith("SQLITE_FULL"):
            advice = "The disk is full: free some space and try again."
        else:
            advice = "Check that the folder exists, is yours, can be written, and has free space."
        raise Failure(f"The conversation file {path} cannot be used: {error}.", advice) from error
