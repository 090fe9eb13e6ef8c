"""search: a regular expression over the files of a folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from minicpm5_mac.tools.path_patterns import Ignored, glob_matches
from minicpm5_mac.tools.place import ToolError, missing, resolve, said, shown_name
from minicpm5_mac.tools.schema import function_schema
from minicpm5_mac.tools.text_page import PAGE_BYTES, SAMPLE_BYTES, is_binary

PAGE_MATCHES = 100
LINE_CHARACTERS = 200
LARGEST_FILE = 8 * 1024 * 1024
WALL_SECONDS = 10.0
"""A regular expression can take for ever; the sandbox ends it then."""

SCHEMA = function_schema(
    "search",
    "Search files for a regular expression. Files in .gitignore are left out.",
    ("pattern",),
    pattern={"type": "string"},
    path={"type": "string", "description": "folder or file"},
    glob={"type": "string", "description": "as *.py"},
    start={"type": "integer", "minimum": 1, "description": "first match"},
)


def run(pattern: str, path: str = ".", glob: str = "", start: int = 1, *, place: dict) -> dict:
    """{"text": `path:line: text` for each matching line, paths relative to the workspace}."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolError(
            f"pattern is no regular expression: {error}. Put \\ before ( ) [ ] . * + ?"
        ) from None
    spot = resolve(place, path)
    if spot.stat is None:
        raise missing(spot, path)
    top = _shown_top(place, spot.path)
    found: list[str] = []
    total = left_out = size = 0
    room = place.get("page_bytes", PAGE_BYTES)
    full = False
    try:
        for shown, descriptor in _files(spot, top, glob):
            with os.fdopen(descriptor, "rb") as file:
                if os.fstat(descriptor).st_size > LARGEST_FILE:
                    left_out += 1
                    continue
                if is_binary(file.read(SAMPLE_BYTES)):
                    continue
                file.seek(0)
                for number, line in enumerate(file, 1):
                    text = line.decode(errors="replace").rstrip("\r\n")
                    match = expression.search(text)
                    if match is None:
                        continue
                    total += 1
                    if total < start or full:
                        continue
                    line_found = f"{shown}:{number}: {_around(text, match)}"
                    size += len(line_found.encode(errors="replace"))
                    full = bool(found) and (size > room or len(found) == PAGE_MATCHES)
                    if not full:
                        found.append(line_found)
    except OSError as error:
        raise ToolError(said(error, path)) from error
    return {"text": _text(found, total, start, left_out)}


def _text(found: list[str], total: int, start: int, left_out: int) -> str:
    notes = []
    end = start - 1 + len(found)
    if not total:
        notes.append("[no match]")
    elif not found:
        notes.append(f"[there is no match {start:,}: {total:,} in all]")
    elif len(found) < total:
        more = f"; the next page: start={end + 1}" if end < total else "; the end"
        notes.append(f"[matches {start:,}-{end:,} of {total:,}{more}]")
    if left_out:
        notes.append(f"[{left_out:,} files larger than {LARGEST_FILE >> 20} MiB were left out]")
    return "\n".join([*found, *notes])


def _shown_top(place: dict, path: str) -> str:
    workspace = place["roots"][0][0]
    if path == workspace:
        return ""
    return path[len(workspace) + 1 :] if path.startswith(workspace + "/") else path


def _files(spot, top: str, glob: str) -> Iterator[tuple[str, int]]:
    """(shown path, open descriptor) of every file meant, in order of their names."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    if stat.S_ISREG(spot.stat.st_mode):
        yield shown_name(top), os.open(spot.name, flags, dir_fd=spot.folder)
        return
    if not stat.S_ISDIR(spot.stat.st_mode):
        raise ToolError("path is neither a file nor a folder.")
    folder = os.open(spot.name, flags | os.O_DIRECTORY, dir_fd=spot.folder)
    yield from _below(folder, "", top, glob, Ignored())


def _below(
    folder: int, inside: str, top: str, glob: str, ignored: Ignored
) -> Iterator[tuple[str, int]]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        ignored = ignored.below(inside, _gitignore(folder, flags))
        for name in sorted(os.listdir(folder)):
            path = f"{inside}/{name}" if inside else name
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                is_folder = stat.S_ISDIR(mode)
                if not (is_folder or stat.S_ISREG(mode)) or name == ".git":
                    continue
                if ignored.covers(path, is_folder):
                    continue
                if not is_folder and glob and not glob_matches(glob, path):
                    continue
                descriptor = os.open(
                    name, flags | (os.O_DIRECTORY if is_folder else 0), dir_fd=folder
                )
            except OSError:
                continue  # gone meanwhile, or not ours to read
            if is_folder:
                yield from _below(descriptor, path, top, glob, ignored)
            else:
                yield shown_name(f"{top}/{path}" if top else path), descriptor
    finally:
        os.close(folder)


def _gitignore(folder: int, flags: int) -> str | None:
    try:
        with os.fdopen(os.open(".gitignore", flags, dir_fd=folder), "rb") as file:
            return file.read(1 << 20).decode(errors="replace")
    except OSError:
        return None


def _around(text: str, match: re.Match[str]) -> str:
    """The line, or what is around the match in a long one."""
    if len(text) <= LINE_CHARACTERS:
        return text
    first = max(0, min(match.start() - LINE_CHARACTERS // 4, len(text) - LINE_CHARACTERS))
    piece = text[first : first + LINE_CHARACTERS]
    return ("…" if first else "") + piece + ("…" if first + len(piece) < len(text) else "")
