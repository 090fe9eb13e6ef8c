"""list_dir: the entries of a folder."""

from __future__ import annotations

import os
import stat

from minicpm5_mac.tools.place import ToolError, missing, resolve, said, shown_name
from minicpm5_mac.tools.schema import function_schema
from minicpm5_mac.tools.text_page import PAGE_BYTES

PAGE_ENTRIES = 200

SCHEMA = function_schema(
    "list_dir",
    "List a folder. Folders end with /, programs with *.",
    (),
    path={"type": "string"},
    start={"type": "integer", "minimum": 1, "description": "first entry"},
)


def run(path: str = ".", start: int = 1, *, place: dict) -> dict:
    """{"text": one entry a line, folders with `/`, executables with `*`, links with a target}."""
    spot = resolve(place, path)
    if spot.stat is None:
        raise missing(spot, path)
    if not stat.S_ISDIR(spot.stat.st_mode):
        raise ToolError(f"{path} is a file. Use read_file.")
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        folder = os.open(spot.name, flags, dir_fd=spot.folder)
        names = sorted(os.listdir(folder))
        if spot.name == ".":
            names = [name for name in names if not _is_placeholder(folder, name, place)]
    except OSError as error:
        raise ToolError(said(error, path)) from error
    page = _page(names[start - 1 : start - 1 + PAGE_ENTRIES], place.get("page_bytes", PAGE_BYTES))
    if not names:
        return {"text": "[empty folder]"}
    if not page:
        return {"text": f"[there is no entry {start:,}: the folder has {len(names):,}]"}
    text = "\n".join(_entry(folder, name) for name in page)
    end = start - 1 + len(page)
    if start > 1 or end < len(names):
        more = f"; the next page: start={end + 1}" if end < len(names) else "; the end"
        text += f"\n[entries {start:,}-{end:,} of {len(names):,}{more}]"
    return {"text": text}


def _page(names: list[str], most_bytes: int) -> list[str]:
    """The first names, at least one, as far as they fit."""
    size = 0
    for count, name in enumerate(names):
        size += len(name.encode(errors="replace")) + 2
        if count and size > most_bytes:
            return names[:count]
    return names


def _is_placeholder(folder: int, name: str, place: dict) -> bool:
    """An empty folder that the sandbox may have put there so that nobody makes that name."""
    if name not in place.get("protected", ()):
        return False
    try:
        return not os.listdir(os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder))
    except OSError:
        return False


def _entry(folder: int, name: str) -> str:
    shown = shown_name(name)
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            return shown + "/"
        if stat.S_ISLNK(mode):
            return f"{shown} -> {shown_name(os.readlink(name, dir_fd=folder))}"
        if stat.S_ISREG(mode):
            return shown + ("*" if mode & 0o111 else "")
        return shown + " (no regular file)"
    except OSError:
        return shown
