"""Running py2app, and keeping what it says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from environment import BUILD, PACKAGING
from finishing import finish

APP = BUILD / "app" / "MiniCPM5.app"


def build(environment: Path, command: Sequence[str]) -> None:
    """Make APP anew, with `environment` in it. command: what runs py2app_setup.py, in its folder.

    Ends the program with py2app's last words where it fails.
    """
    for folder in (APP, BUILD / "py2app"):
        shutil.rmtree(folder, ignore_errors=True)
    log = BUILD / "py2app.log"
    with log.open("wb") as output:
        ended = subprocess.run(command, cwd=PACKAGING, stdout=output, stderr=subprocess.STDOUT)
    if ended.returncode != 0:
        words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]
        sys.exit("\n".join([*words, f"py2app failed; all it said is in {log}"]))
    finish(APP, environment)
