"""read_file: a text file, a page at a time."""

from __future__ import annotations

import os

from minicpm5_mac.tools.place import open_file, stamp
from minicpm5_mac.tools.schema import function_schema
from minicpm5_mac.tools.text_page import PAGE_BYTES, PAGE_LINES, read_page

SCHEMA = function_schema(
    "read_file",
    "Read a text file. Long files come in pages.",
    ("path",),
    path={"type": "string"},
    start={"type": "integer", "minimum": 1, "description": "first line"},
    lines={"type": "integer", "minimum": 1, "description": "how many lines"},
)


def run(path: str, start: int = 1, lines: int = PAGE_LINES, *, place: dict) -> dict:
    """{"text": the page, "path": where it lies, "stamp": tells later whether it changed}."""
    spot, descriptor = open_file(place, path)
    with os.fdopen(descriptor, "rb") as file:
        text = read_page(file, start, lines, place.get("page_bytes", PAGE_BYTES))
        return {"text": text, "path": spot.path, "stamp": stamp(os.fstat(descriptor))}
