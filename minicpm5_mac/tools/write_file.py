"""write_file: a whole file, new or instead of an old one."""

from __future__ import annotations

from minicpm5_mac.tools.atomic_write import old_text, spot_to_write, write
from minicpm5_mac.tools.place import MissingFolder, stamp
from minicpm5_mac.tools.schema import function_schema

SCHEMA = function_schema(
    "write_file",
    "Write a whole file. To change part of one, use edit_file.",
    ("path", "content"),
    path={"type": "string"},
    content={"type": "string"},
)


def preview(path: str, content: str, *, place: dict) -> dict:
    """{"path", "before": the old text (None: no file), "after", "stamp"}; writes nothing."""
    try:
        spot = spot_to_write(place, path)
    except MissingFolder:
        return {"path": path, "before": None, "after": content, "stamp": ""}
    if spot.stat is None:
        return {"path": spot.path, "before": None, "after": content, "stamp": ""}
    before = old_text(place, path)
    return {"path": spot.path, "before": before, "after": content, "stamp": stamp(spot.stat)}


def run(path: str, content: str, *, place: dict) -> dict:
    """{"text": what was done, "path", "stamp"}; folders on the way are made."""
    spot = spot_to_write(place, path, make_folders=True)
    data = content.encode(errors="replace")
    new = write(place, spot, path, data)
    done = "Wrote" if spot.stat is None else "Replaced"
    return {"text": f"{done} {path} ({len(data):,} bytes).", "path": spot.path, "stamp": new}
