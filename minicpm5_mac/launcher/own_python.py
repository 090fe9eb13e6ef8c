"""Starting our own interpreter for the chat.

Out of an app bundle too: its interpreter finds itself, and its first script has dropped what py2app
exports before any of this runs (packaging/MiniCPM5.py). With the bundle's PYTHONHOME, a Python of
the user's would import from the bundle.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

PACKAGES = str(Path(__file__).parents[2])


def own_environment() -> dict[str, str]:
    """For a process of ours: ours, and where the interpreter does not find our packages by itself,
    as in a work tree, the way to them."""
    if PACKAGES in sysconfig.get_paths().values():
        return dict(os.environ)
    ways = [PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(ways)}


def chat_command(*flags: str) -> tuple[str, ...]:
    """The terminal app. -P: the folder in which it starts is not a place to import from."""
    return (sys.executable, "-P", "-m", "minicpm5_mac", "chat", *flags)
