"""The same tests once more as a user without rights: the sandbox must not need root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOBODY = 65534
AGAIN = (
    "test_canary.py",
    "test_hostile_calls.py",
    "test_process.py",
    "test_app_killed.py",
    "test_placeholders.py",
)


@pytest.mark.skipif(os.getuid() != 0, reason="these tests already run without rights")
def test_everything_holds_as_nobody_too(sandbox, tmp_path):
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv: sudo apt install util-linux")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    home = Path("/tmp") / f"minicpm5-nobody-{os.getpid()}"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    try:
        python = _interpreter(packages)
        done = subprocess.run(
            [
                *_as_nobody(home, packages),
                *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("--basetemp", str(home / "t"), "-c", str(HERE.parents[1] / "pyproject.toml")),
                *(str(HERE / name) for name in AGAIN),
            ],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def _as_nobody(home: Path, packages: str) -> list[str]:
    return [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *("env", "-i", "PATH=/usr/bin:/bin", f"HOME={home}", "PYTHONDONTWRITEBYTECODE=1"),
        f"HYPOTHESIS_STORAGE_DIRECTORY={home}/hypothesis",
        f"PYTHONPATH={HERE.parents[1]}:{packages}",
    ]


def _interpreter(packages: str) -> str:
    """An interpreter of this version that nobody may run: ours may lie in root's home."""
    check = f"import sys, pytest, psutil; assert sys.version_info[:2] == {sys.version_info[:2]}"
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run(
            [*_as_nobody(Path("/"), packages), python, "-c", check],
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return python
    version = ".".join(map(str, sys.version_info[:2]))
    pytest.skip(
        f"needs a Python {version} outside of root's home: sudo apt install python{version}"
    )
