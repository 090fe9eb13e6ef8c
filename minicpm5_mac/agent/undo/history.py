"""The turns whose file changes are kept, newest first, each of which can be taken back."""

from __future__ import annotations

import difflib
import hashlib
import os
import secrets
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from minicpm5_mac import locations
from minicpm5_mac.agent.undo.copies import Copies
from minicpm5_mac.agent.undo.restore import current, restore
from minicpm5_mac.agent.undo.scan import Entry, scan
from minicpm5_mac.events import FileChange
from minicpm5_mac.failure import Failure
from minicpm5_mac.visible_text import visible
from minicpm5_mac.whole_file import write_whole

MOST_TURNS = 50
MOST_KEPT_BYTES = 1024 * 1024 * 1024
MOST_DIFF_BYTES = 1024 * 1024


class Change(msgspec.Struct, frozen=True):
    """What became of one path; None: nothing was or is there."""

    path: str
    before: Entry | None
    after: Entry | None

    def shown(self) -> FileChange:
        """The same for front ends."""
        before, after = self.before, self.after
        if before is None or after is None:
            kind = "added" if before is None else "removed"
        else:
            same = before.same_content(after) and before.kind == after.kind
            kind = "mode" if same and before.target == after.target else "changed"
        return FileChange(
            path=self.path,
            change=kind,
            old_bytes=None if before is None else before.size,
            new_bytes=None if after is None else after.size,
            executable=after is not None and after.kind == "file" and bool(after.mode & 0o111),
            kept=before is None or before.kind != "file" or bool(before.content),
        )


class UndoTurn(msgspec.Struct, frozen=True):
    """The changes of one turn. undoes: the turn it took back, where it is an undo itself."""

    id: str
    conversation: str
    made: float
    changes: tuple[Change, ...]
    undoes: str = ""


@dataclass(frozen=True)
class TakenBack:
    """turn: the taking back, which can be taken back in turn. left: (path, why it was not)."""

    turn: UndoTurn
    left: tuple[tuple[str, str], ...]


class UndoHistory:
    """The kept turns of one workspace, at most MOST_TURNS. Any thread may call it.

    What an app that was killed left of its last turn becomes a turn when this is made.
    """

    def __init__(self, workspace: Path, roots: tuple[Path, ...]) -> None:
        """roots: the folders that tools may write, resolved."""
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
        self._folder = locations.data_dir() / "undo" / name
        self._roots = roots
        self._copies = Copies(self._folder / "contents")
        self._lock = threading.RLock()
        self._open: tuple[str, str] | None = None
        (self._folder / "turns").mkdir(exist_ok=True, mode=0o700)
        pending = self._read("pending.json", dict[str, str])
        if pending:
            self._open = (pending["id"], pending["conversation"])
            self.finish()

    def begin(self, conversation: str) -> None:
        """Remember what is there, before the first call of a turn that may change it."""
        with self._lock:
            if self._open is not None:
                return
            self._save_index(scan(self._roots, self._index(), self._copies))
            self._open = (f"{time.time_ns():020d}-{secrets.token_hex(3)}", conversation)
            pending = {"id": self._open[0], "conversation": conversation}
            self._write("pending.json", msgspec.json.encode(pending))

    def finish(self) -> UndoTurn | None:
        """Keep what changed since `begin`; None where nothing did, or nothing was begun."""
        with self._lock:
            if self._open is None:
                return None
            (name, conversation), self._open = self._open, None
            before = self._index()
            after = scan(self._roots, before, self._copies)
            changes = _differences(before, after)
            turn = UndoTurn(name, conversation, time.time(), changes) if changes else None
            if turn is not None:
                self._keep(turn)
            self._save_index(after)
            (self._folder / "pending.json").unlink(missing_ok=True)
            self._prune()
            return turn

    def turns(self) -> tuple[UndoTurn, ...]:
        """All that can be taken back, the latest first."""
        with self._lock:
            names = sorted((self._folder / "turns").glob("[0-9]*.json"), reverse=True)
            found = (self._read(f"turns/{name.name}", UndoTurn) for name in names)
            return tuple(turn for turn in found if turn is not None)

    def turn(self, name: str) -> UndoTurn:
        """The turn of that id. Raises Failure where it is not kept."""
        found = self._read(f"turns/{name}.json", UndoTurn) if name.isprintable() else None
        if found is None or "/" in name:
            raise Failure(f"the changes of turn {name} are not kept", "See which ones are.")
        return found

    def diff(self, change: Change, *, reverse: bool = False) -> str:
        """A change as a unified diff, hidden characters visible; reverse: of its taking back."""
        sides = [self._text(change.before), self._text(change.after)]
        names = [change.path if entry else "/dev/null" for entry in (change.before, change.after)]
        if reverse:
            sides.reverse()
            names.reverse()
        return unified_diff(sides[0], sides[1], names[0], names[1])

    def take_back(self, name: str) -> TakenBack:
        """Undo a turn. A path that changed since, or whose old content is not kept, is left."""
        with self._lock:
            turn = self.turn(name)
            done: list[Change] = []
            left: list[tuple[str, str]] = []
            removals = [change for change in reversed(turn.changes) if change.before is None]
            others = [change for change in turn.changes if change.before is not None]
            for change in (*removals, *others):
                why = self._undo(change)
                if why:
                    left.append((change.path, why))
                else:
                    done.append(Change(change.path, change.after, change.before))
            self._close_folders(done)
            done.sort(key=lambda change: change.path)
            name = f"{time.time_ns():020d}-{secrets.token_hex(3)}"
            undo = UndoTurn(name, turn.conversation, time.time(), tuple(done), turn.id)
            if done:
                self._keep(undo)
            return TakenBack(undo, tuple(left))

    def obstacles(self, turn: UndoTurn) -> dict[str, str]:
        """The paths that taking a turn back would leave as they are now, and why."""
        with self._lock:
            found = {
                change.path: _obstacle(
                    change, current(self._roots, change.path, self._copies, change.after)
                )
                for change in turn.changes
            }
        return {path: why for path, why in found.items() if why}

    def _undo(self, change: Change) -> str:
        """Put one path back; why not, where it cannot be."""
        before = change.before
        now = current(self._roots, change.path, self._copies)
        why = _obstacle(change, now)
        if why or (now is None and before is None):
            return why
        try:
            if before is not None and before.kind == "folder":
                # Its files come back first; `take_back` gives it its own mode in the end.
                before = msgspec.structs.replace(before, mode=before.mode | 0o700)
            restore(self._roots, change.path, before, self._copies)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _close_folders(self, done: list[Change]) -> None:
        for change in reversed(done):
            if change.after is not None and change.after.kind == "folder":
                restore(self._roots, change.path, change.after, self._copies)

    def _text(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        if entry.kind != "file":
            return f"[{entry.kind}] {entry.target}\n"
        if not entry.content:
            return f"[{entry.size:,} bytes, not kept]\n"
        with self._copies.path(entry.content).open("rb") as file:
            data = file.read(MOST_DIFF_BYTES + 1)
        if b"\0" in data or len(data) > MOST_DIFF_BYTES:
            return f"[{entry.size:,} bytes, {entry.content[:12]}]\n"
        return data.decode(errors="replace")

    # Files --------------------------------------------------------------------------------------

    def _index(self) -> dict[str, Entry]:
        return self._read("index.json", dict[str, Entry]) or {}

    def _save_index(self, entries: dict[str, Entry]) -> None:
        self._write("index.json", msgspec.json.encode(entries))

    def _keep(self, turn: UndoTurn) -> None:
        self._write(f"turns/{turn.id}.json", msgspec.json.encode(turn))

    def _prune(self) -> None:
        """Drop the oldest turns beyond the bounds, and the contents that only they needed."""
        wanted = {entry.content for entry in self._index().values()}
        sizes: dict[str, int] = {}
        for number, turn in enumerate(self.turns()):
            for change in turn.changes:
                for entry in (change.before, change.after):
                    if entry is not None and entry.content:
                        sizes[entry.content] = entry.size
            if number and (number >= MOST_TURNS or sum(sizes.values()) > MOST_KEPT_BYTES):
                (self._folder / "turns" / f"{turn.id}.json").unlink(missing_ok=True)
            else:
                wanted |= sizes.keys()
        self._copies.drop_all_but(wanted)

    def _read(self, name: str, kind):
        try:
            return msgspec.json.decode((self._folder / name).read_bytes(), type=kind)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _write(self, name: str, data: bytes) -> None:
        write_whole(self._folder / name, data)


def _obstacle(change: Change, now: Entry | None) -> str:
    """Why a change cannot be taken back, given what is there now; empty where it can."""
    before = change.before
    if before is not None and before.kind == "file" and not before.content:
        return "its old content was too large to keep"
    if now is None and before is None:
        return ""
    if change.after is None:
        return "something else is there now" if now is not None else ""
    return "" if change.after.same(now) else "it changed since"


def unified_diff(before: str, after: str, old_name: str, new_name: str) -> str:
    """A unified diff with nothing in it that a terminal would obey or that hides."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), old_name, new_name
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n"
                   for line in lines)  # fmt: skip
    return visible(text)


def _differences(before: dict[str, Entry], after: dict[str, Entry]) -> tuple[Change, ...]:
    paths = sorted({*before, *after})
    changes = (Change(path, before.get(path), after.get(path)) for path in paths)
    return tuple(
        change
        for change in changes
        if (change.before or change.after) is not None
        and not (change.before is not None and change.before.same(change.after))
    )
