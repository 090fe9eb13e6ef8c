"""Puts one path back to what it was. Never follows a link, never leaves a half-written file."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from pathlib import Path

from minicpm5_mac.agent.undo.copies import Copies
from minicpm5_mac.agent.undo.scan import Entry, entry_at, open_folder


def current(
    roots: tuple[Path, ...], path: str, copies: Copies, known: Entry | None = None
) -> Entry | None:
    """What is at a path now. known: what was there; it is not read again under the same mark."""
    try:
        folder = _parent(roots, path)
    except OSError:
        return None
    try:
        return entry_at(folder, os.path.basename(path), known, copies, left=1 << 62)
    finally:
        os.close(folder)


def restore(roots: tuple[Path, ...], path: str, wanted: Entry | None, copies: Copies) -> None:
    """Make `path` what `wanted` says; None removes it. Raises OSError."""
    folder = _parent(roots, path)
    name = os.path.basename(path)
    try:
        here = _mode(folder, name)
        if wanted is None:
            _remove(folder, name, here)
        elif wanted.kind == "folder":
            if here is None or not stat.S_ISDIR(here):
                _remove(folder, name, here)
                os.mkdir(name, dir_fd=folder)
            os.chmod(name, wanted.mode, dir_fd=folder, **_not_following())
        else:
            if here is not None and stat.S_ISDIR(here):
                os.rmdir(name, dir_fd=folder)
            temporary = f".minicpm5-undo-{secrets.token_hex(6)}"
            try:
                if wanted.kind == "link":
                    os.symlink(wanted.target, temporary, dir_fd=folder)
                else:
                    _copy(copies.path(wanted.content), folder, temporary, wanted.mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
    finally:
        os.close(folder)


def _copy(source: Path, folder: int, name: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    made = os.open(name, flags, 0o600, dir_fd=folder)
    with os.fdopen(made, "wb") as target, source.open("rb") as file:
        shutil.copyfileobj(file, target)
        os.fchmod(made, mode)


def _remove(folder: int, name: str, mode: int | None) -> None:
    if mode is None:
        return
    if stat.S_ISDIR(mode):
        os.rmdir(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def _mode(folder: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _parent(roots: tuple[Path, ...], path: str) -> int:
    for root in roots:
        if Path(path).is_relative_to(root) and Path(path) != root:
            return open_folder(root, os.path.relpath(os.path.dirname(path), root))
    raise FileNotFoundError(path)


def _not_following() -> dict[str, bool]:
    # Linux has no fchmodat that spares links; what is changed here was seen to be a folder.
    return {"follow_symlinks": False} if os.chmod in os.supports_follow_symlinks else {}
