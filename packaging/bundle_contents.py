"""A finished bundle compared with the list in contents.toml, and searched for what leaks."""

from __future__ import annotations

import os
import plistlib
import tomllib
from pathlib import Path

from environment import CONTENTS, REPOSITORY
from finishing import library
from info_plist import LEAKING, info_plist


def content_faults(app: Path, *, mac: bool) -> list[str]:
    """What is missing and what is too much. mac: the bundle is the Mac's own, signed."""
    contents = app / "Contents"
    lists = tomllib.loads(CONTENTS.read_text(encoding="utf-8"))
    held = [*lists["held"]["paths"], *(lists["held"]["paths_on_a_mac"] if mac else [])]
    inside = os.fspath(library(app).relative_to(contents))
    missing = [
        f"missing: {pattern}"
        for pattern in held
        if not any(contents.glob(pattern.replace("LIB", inside)))
    ]
    extra = [
        f"should not be there: {path.relative_to(contents)}"
        for pattern in lists["left_out"]["paths"]
        for path in contents.glob(pattern.replace("LIB", inside))
    ]
    return [*missing, *extra]


def plist_faults(app: Path) -> list[str]:
    """Info.plist against what `info_plist` says, and what must not be in it."""
    plist = plistlib.loads((app / "Contents" / "Info.plist").read_bytes())
    differing = [
        f"Info.plist: {key} is {plist.get(key)!r}"
        for key, value in info_plist().items()
        if plist.get(key) != value
    ]
    if any(not place.startswith("@exec") for place in plist.get("PyRuntimeLocations", [])):
        differing.append("Info.plist: a Python outside of the app would be taken")
    leaking = [f"Info.plist: {key} is there" for key in LEAKING[:1] if key in plist]
    return [*differing, *leaking]


def path_leaks(app: Path) -> list[str]:
    """Text files of ours and py2app's, and links, with a path of the machine that built the app."""
    names = {os.fspath(REPOSITORY), os.fspath(Path.home())} - {"/", "/root"}
    contents = app / "Contents"
    resources = contents / "Resources"
    texts = [contents / "Info.plist", *resources.glob("*.py")]
    texts += library(app).glob("*.dist-info/*")
    found = [
        f"{path.relative_to(contents)}: has {name}"
        for path in texts
        if path.is_file()
        for name in sorted(names)
        if name.encode() in path.read_bytes()
    ]
    for path in contents.rglob("*"):
        if path.is_symlink() and (
            os.path.isabs(os.readlink(path))
            or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(app))
        ):
            found.append(f"{path.relative_to(contents)}: links out of the app")
    return found
