"""Writes a file so that either the old content or the new one is there, whatever happens."""

from __future__ import annotations

import os
import stat

from minicpm5_mac.sandbox.protected import is_protected
from minicpm5_mac.tools.place import Spot, ToolError, open_file, resolve, said, stamp
from minicpm5_mac.tools.text_page import SAMPLE_BYTES, is_binary

TEMPORARY = ".minicpm5-new-"
LARGEST_TEXT = 4 * 1024 * 1024


def spot_to_write(place: dict, path: str, *, make_folders: bool = False) -> Spot:
    """Where a write goes. Raises ToolError for what a tool must not or cannot write."""
    # Before any folder on the way is made, and again for where links lead.
    _refuse_protected(f"/{path}", path)
    spot = resolve(place, path, make_folders=make_folders)
    _refuse_protected(spot.path, path)
    if not spot.writable:
        raise ToolError(f"{path} may only be read.")
    if spot.stat is None:
        return spot
    if stat.S_ISDIR(spot.stat.st_mode):
        raise ToolError(f"{path} is a folder. Give a file name.")
    if not stat.S_ISREG(spot.stat.st_mode):
        raise ToolError(f"{path} is no regular file.")
    # Asked of the bits: a rename over the file needs no permission on it.
    if not spot.stat.st_mode & 0o222 or not os.access(spot.name, os.W_OK, dir_fd=spot.folder):
        raise ToolError(f"{path} is read-only. Leave it, or ask the user.")
    seen = place.get("seen", {}).get(spot.path)
    if seen is not None and seen != stamp(spot.stat):
        raise ToolError(f"{path} changed since it was read. Read it again, then change it.")
    return spot


def _refuse_protected(where: str, path: str) -> None:
    if is_protected(where):
        raise ToolError(f"{path} is never written by tools (git, editor and shell settings).")


def old_text(place: dict, path: str) -> str:
    """What a file holds, or a line about it where that is no text or more than a diff can show."""
    _, descriptor = open_file(place, path)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST_TEXT + 1)
        size = os.fstat(descriptor).st_size
    if is_binary(data[:SAMPLE_BYTES]) or len(data) > LARGEST_TEXT:
        return f"[{size:,} bytes, not shown]\n"
    return data.decode(errors="replace")


def write(place: dict, spot: Spot, path: str, data: bytes) -> str:
    """Put `data` there; returns the new stamp.

    place["expect"]: the stamp of what the user was shown, "" where nothing was there.
    Raises ToolError, with the old content untouched.
    """
    now = "" if spot.stat is None else stamp(spot.stat)
    if place.get("expect", now) != now:
        raise ToolError(f"{path} changed while the user was asked. Read it again.")
    temporary = f"{TEMPORARY}{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(temporary, flags, 0o666, dir_fd=spot.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if spot.stat is not None:
                    os.fchmod(descriptor, stat.S_IMODE(spot.stat.st_mode) & 0o777)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
                status = os.fstat(descriptor)
            os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        except BaseException:
            os.unlink(temporary, dir_fd=spot.folder)
            raise
    except OSError as error:
        raise ToolError(said(error, path)) from error
    return stamp(status)
