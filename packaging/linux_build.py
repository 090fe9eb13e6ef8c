"""py2app on Linux: its graph and its build, with the steps that read Mach-O left out.

The tree that comes out is the app's, with this machine's libraries in place of the Mac's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from environment import BUILD, PACKAGING
from finishing import finish

APP = BUILD / "app" / "MiniCPM5.app"

# py2app looks in every extension module for @loader_path, with a reader of Mach-O.
PATCHED = """\
import sys, runpy
import py2app.build_app
py2app.build_app.loader_paths = lambda source, destination: ()
sys.argv = ["py2app_setup.py", "-q", "py2app", "--debug-skip-macholib"]
sys.path.insert(0, ".")
runpy.run_path("py2app_setup.py", run_name="__main__")
"""


def build(environment: Path) -> Path:
    """Make the tree and return it. Raises subprocess.CalledProcessError with py2app's last words."""
    for folder in (APP, BUILD / "py2app"):
        shutil.rmtree(folder, ignore_errors=True)
    variables = {
        **os.environ,
        "PYTHONPATH": os.fspath(environment),
        "MINICPM5_APP_ENVIRONMENT": os.fspath(environment),
    }
    log = BUILD / "py2app.log"
    with log.open("wb") as output:
        ended = subprocess.run(
            [sys.executable, "-c", PATCHED],
            cwd=PACKAGING,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if ended.returncode != 0:
        words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]
        sys.exit("\n".join([*words, f"py2app failed; all it said is in {log}"]))
    _take_libraries(environment)
    finish(APP, environment)
    return APP


def _take_libraries(environment: Path) -> None:
    """Linux wheels keep libraries in `*.libs` beside the package; and the interpreter's own."""
    home = APP / "Contents" / "Resources" / "lib" / f"python{sysconfig.get_python_version()}"
    for folder in environment.glob("*.libs"):
        shutil.copytree(folder, home / folder.name, dirs_exist_ok=True)
    name = sysconfig.get_config_var("INSTSONAME")
    shared = Path(sysconfig.get_config_var("LIBDIR") or "", name or "")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and shared.is_file():
        shutil.copy(shared, APP / "Contents" / "Frameworks")
