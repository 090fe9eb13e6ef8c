"""What is in the folders that tools may write: every file, link and folder, as it is now."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from minicpm5_mac.agent.undo.copies import Copies

LARGEST_FILE = 16 * 1024 * 1024
MOST_BYTES = 256 * 1024 * 1024
MOST_ENTRIES = 50_000
NEVER_LOOKED_INTO = frozenset({".git"})
"""git's own history is there already, and the sandbox keeps tools from writing it."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing on disk.

    content: the digest of a file's copy, empty where none was kept; target: where a link leads.
    mark: tells without reading whether a file is the one seen before (inode, times in ns).
    """

    kind: Literal["file", "link", "folder"]
    mode: int
    size: int = 0
    content: str = ""
    target: str = ""
    mark: tuple[int, int, int] = (0, 0, 0)

    def same(self, other: Entry | None) -> bool:
        """Whether nothing that can be seen from outside differs."""
        if other is None or (self.kind, self.target) != (other.kind, other.target):
            return False
        if self.kind != "link" and self.mode != other.mode:
            return False
        return self.same_content(other)

    def same_content(self, other: Entry) -> bool:
        """Whether two files hold the same; by their marks where no copy was kept."""
        if self.content and other.content:
            return self.content == other.content
        return self.kind != "file" or (self.size, self.mark) == (other.size, other.mark)


def scan(
    roots: Iterable[Path], known: Mapping[str, Entry], copies: Copies, *, keep: bool = True
) -> dict[str, Entry]:
    """All entries below `roots` by absolute path; a root itself is not among them.

    known: an earlier scan; what carries the same mark is not read again. keep: contents are
    copied, nearest to the root first, up to LARGEST_FILE each and MOST_BYTES in all.
    Names that are not valid UTF-8, devices, pipes and sockets are left out, and so is what lies
    beyond MOST_ENTRIES.
    """
    found: dict[str, Entry] = {}
    left = MOST_BYTES
    for root in roots:
        waiting = deque([str(root)])
        while waiting and len(found) < MOST_ENTRIES:
            folder = waiting.popleft()
            try:
                descriptor = open_folder(root, os.path.relpath(folder, root))
            except OSError:
                continue
            try:
                for name in sorted(os.listdir(descriptor)):
                    path = f"{folder}/{name}"
                    entry = entry_at(descriptor, name, known.get(path), copies, left, keep)
                    if entry is None or not _is_utf8(name):
                        continue
                    found[path] = entry
                    if entry.kind == "file" and entry.content:
                        left -= entry.size
                    if entry.kind == "folder" and name not in NEVER_LOOKED_INTO:
                        waiting.append(path)
            finally:
                os.close(descriptor)
    return found


def entry_at(
    folder: int, name: str, known: Entry | None, copies: Copies, left: int, keep: bool = True
) -> Entry | None:
    """The entry `name` of an open folder; None where there is none that is kept."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return Entry("link", mode, target=os.readlink(name, dir_fd=folder))
        if stat.S_ISDIR(status.st_mode):
            return Entry("folder", mode)
        if not stat.S_ISREG(status.st_mode):
            return None
        mark = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if known is not None and known.kind == "file" and known.content and known.mark == mark:
            return msgspec.structs.replace(known, mode=mode)
        content, size = "", status.st_size
        if keep and size <= min(LARGEST_FILE, left):
            descriptor = os.open(name, _OPEN, dir_fd=folder)
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    content, size = copies.keep(descriptor)
            finally:
                os.close(descriptor)
        return Entry("file", mode, size, content, mark=mark)
    except FileNotFoundError:
        return None
    except PermissionError:
        return Entry("file", 0)


def open_folder(root: Path, below: str) -> int:
    """A descriptor of a folder below a root, reached without following a link."""
    flags = _OPEN | os.O_DIRECTORY
    descriptor = os.open(root, flags)
    for part in below.split("/"):
        if part in ("", "."):
            continue
        try:
            inner = os.open(part, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _is_utf8(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)
