"""py2app on Linux: its graph and its build, with the steps that read Mach-O left out.

The tree that comes out is the app's, with this machine's libraries in place of the Mac's.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

from py2app_build import APP, build

# py2app looks in every extension module for @loader_path, with a reader of Mach-O.
PATCHED = """\
import sys, runpy
import py2app.build_app
py2app.build_app.loader_paths = lambda source, destination: ()
sys.argv = ["py2app_setup.py", "-q", "py2app", "--debug-skip-macholib"]
sys.path.insert(0, ".")
runpy.run_path("py2app_setup.py", run_name="__main__")
"""


def build_on_linux(environment: Path) -> None:
    """Make the tree."""
    build(environment, [sys.executable, "-c", PATCHED])
    # What macholib does with Python.framework on a Mac.
    name = sysconfig.get_config_var("INSTSONAME")
    shared = Path(sysconfig.get_config_var("LIBDIR") or "", name or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared.is_file():
        shutil.copy(shared, APP / "Contents" / "Frameworks")
