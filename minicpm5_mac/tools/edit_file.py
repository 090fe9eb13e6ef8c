"""edit_file: one exact piece of text replaced by another."""

from __future__ import annotations

import os

from minicpm5_mac.tools.atomic_write import LARGEST_TEXT, spot_to_write, write
from minicpm5_mac.tools.place import Spot, ToolError, missing, open_file, stamp
from minicpm5_mac.tools.schema import function_schema

SCHEMA = function_schema(
    "edit_file",
    "Replace text in a file. old must be there exactly once.",
    ("path", "old", "new"),
    path={"type": "string"},
    old={"type": "string"},
    new={"type": "string"},
)


def preview(path: str, old: str, new: str, *, place: dict) -> dict:
    """{"path", "before", "after", "stamp"}; writes nothing."""
    spot, before, after = _edited(place, path, old, new)
    assert spot.stat is not None
    return {"path": spot.path, "before": before, "after": after, "stamp": stamp(spot.stat)}


def run(path: str, old: str, new: str, *, place: dict) -> dict:
    """{"text": what was done, "path", "stamp"}."""
    spot, before, after = _edited(place, path, old, new)
    written = write(place, spot, path, after.encode())
    number = 1 + before[: _first_difference(before, after)].count("\n")
    return {"text": f"Edited {path} (line {number:,}).", "path": spot.path, "stamp": written}


def _edited(place: dict, path: str, old: str, new: str) -> tuple[Spot, str, str]:
    spot = spot_to_write(place, path)
    if spot.stat is None:
        raise missing(spot, path)
    _, descriptor = open_file(place, path)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LARGEST_TEXT + 1)
    if len(data) > LARGEST_TEXT:
        raise ToolError(f"{path} is larger than {LARGEST_TEXT:,} bytes. Use run_command.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ToolError(f"{path} is no UTF-8 text. Use run_command or python.") from None
    if not old:
        raise ToolError("old is empty. Give the exact text to replace.")
    if old == new:
        raise ToolError("old and new are the same: nothing would change.")
    # What a page shows as a line feed is CR LF in some files; it stays so.
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        old, new = (piece.replace("\r\n", "\n").replace("\n", "\r\n") for piece in (old, new))
    count = text.count(old)
    if count == 0:
        raise ToolError(f"old was not found in {path}. Read it and copy the text exactly.")
    if count > 1:
        raise ToolError(f"old was found {count} times in {path}. Give more text around it.")
    after = text.replace(old, new)
    try:
        after.encode()
    except UnicodeEncodeError:
        raise ToolError("new holds a character that is no valid Unicode.") from None
    return spot, text, after


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
