"""Starting our own interpreter, also out of an app bundle, and keeping the bundle to ourselves.

py2app exports what its interpreter needs to find its library. Of a program of the user's, another
Python above all, it makes nonsense: with the bundle's PYTHONHOME, /usr/bin/python3 imports from
the bundle. So a program of ours gets the two it needs, and everybody else none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

BUNDLE_VARIABLES = frozenset({"ARGVZERO", "EXECUTABLEPATH", "RESOURCEPATH", "__PYVENV_LAUNCHER__"})
"""py2app's own, besides everything that begins with PYTHON (its launcher, and `__boot__.py`)."""

_MARK = "RESOURCEPATH"


def user_environment(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a program of the user's: nothing of the bundle; elsewhere, the environment as it is."""
    source = os.environ if inherited is None else inherited
    if _MARK not in source:
        return dict(source)
    return {
        name: value
        for name, value in source.items()
        if name not in BUNDLE_VARIABLES and not name.startswith("PYTHON")
    }


def own_environment(inherited: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a process of ours, run by `sys.executable`: it finds the same library and packages."""
    source = os.environ if inherited is None else inherited
    environment = user_environment(source)
    if "PYTHONHOME" in source:
        environment["PYTHONHOME"] = source["PYTHONHOME"]
    packages = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(
        [packages, *filter(None, [environment.get("PYTHONPATH")])]
    )
    return environment


def chat_command(*flags: str) -> tuple[str, ...]:
    """The terminal app. -P: the folder in which it starts is not a place to import from."""
    return (sys.executable, "-P", "-m", "minicpm5_mac", "chat", *flags)
