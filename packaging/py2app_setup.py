"""py2app's setup file: stub, interpreter and standard library; `finishing.py` adds the packages.

In this folder and without the project's metadata, since py2app refuses a project that has
dependencies. The packages are not on its path: its graph cannot see what mlx-lm and transformers
import by name, cannot name a namespace like mlx, and takes minutes over them; copied as they were
installed they need none of that. `make_app.py` and `linux_build.py` run this.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
from typing import Any

from environment import BUILD, CONTENTS, REPOSITORY
from info_plist import info_plist
from setuptools import setup

# py2app's recipe for Tk asks for a display, and takes Tk's own folders, also where Tk is excluded.
sys.modules["_tkinter"] = None  # pyright: ignore[reportArgumentType]


def left_out() -> list[str]:
    """Modules of the standard library that the app goes without."""
    return tomllib.loads(CONTENTS.read_text(encoding="utf-8"))["standard_library"]["left_out"]


def standard_library() -> list[str]:
    """All the rest of it: the python tool promises the model the standard library."""
    names: list[str] = []
    for name in sorted(sys.stdlib_module_names - set(left_out()) - {"__main__"}):
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue  # a module of another system
        names.append(name)
        if spec.submodule_search_locations is not None:
            names.append(f"{name}.*")
    return names


OPTIONS: dict[str, Any] = {
    "arch": "arm64",
    "argv_emulation": False,
    "no_chdir": True,
    # Stored, not deflated: the interpreter needs no zlib to find its first module.
    "compressed": False,
    "strip": False,
    "optimize": 0,
    "iconfile": os.fspath(REPOSITORY / "assets" / "icon.icns"),
    "plist": info_plist(),
    "includes": standard_library(),
    "excludes": [*left_out(), "minicpm5_mac", "setuptools", "pip", "pkg_resources"],
    "bdist_base": os.fspath(BUILD / "py2app"),
    "dist_dir": os.fspath(BUILD / "app"),
}

setup(name="MiniCPM5", app=["MiniCPM5.py"], options={"py2app": OPTIONS})
