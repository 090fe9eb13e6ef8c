"""The environment that goes into the app: locked wheels for one platform, trimmed.

All of it goes in as it lies here: what a wheel's libraries find beside them, they find in the
bundle too. Only the standard library goes through py2app's graph.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PACKAGING = Path(__file__).parent
REPOSITORY = PACKAGING.parent
BUILD = PACKAGING / "build"
CACHE = Path(os.environ.get("MINICPM5_PACKAGING_CACHE", BUILD / "cache"))
CONTENTS = PACKAGING / "contents.toml"

PYTHON_VERSION = "3.12"
MACOS = "14.0"
"""MLX's `macosx_26_0` wheels need 26.2, and pip on such a Mac takes them: the app would end
on everything older. So the wheels are those of this version wherever the build runs."""

# proxy-tools, of pywebview, is one pure Python file that is published as source only.
SOURCE_ONLY = ("proxy-tools",)


def uv() -> str:
    """The locked uv, beside the interpreter that runs this."""
    return os.fspath(Path(sys.executable).parent / "uv")


def make_environment(folder: Path, *, for_macos: bool) -> None:
    """Install the lock and this project into `folder`, and take away what the app leaves out.

    for_macos: wheels of macOS on arm64, wherever this runs; otherwise those of this machine.
    Raises subprocess.CalledProcessError, after the tool has said why.
    """
    shutil.rmtree(folder, ignore_errors=True)
    wheel = project_wheel()
    platform = ["--python-platform", "aarch64-apple-darwin", "--python-version", PYTHON_VERSION]
    no_source = [word for name in SOURCE_ONLY for word in ("--no-binary", name)]
    environment = {
        **os.environ,
        "MACOSX_DEPLOYMENT_TARGET": MACOS,
        "UV_CACHE_DIR": os.fspath(CACHE / "uv"),
    }
    install = [uv(), "pip", "install", "--quiet", "--link-mode", "copy", "--target", folder]
    install += ["--python", sys.executable]
    install += platform if for_macos else []
    locked = ["--require-hashes", "--only-binary", ":all:", *no_source]
    lock = PACKAGING / "requirements.lock"
    subprocess.run([*install, *locked, "-r", lock], check=True, env=environment)
    subprocess.run([*install, "--no-deps", wheel], check=True, env=environment)
    trim(folder)


def project_wheel() -> Path:
    """This project as it would be published; not the work tree, which has tests beside it."""
    made = BUILD / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "hatchling", "build", "--target", "wheel"),
            *("--directory", made),
        ],
        check=True,
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = made.glob("*.whl")
    return wheel


def trim(folder: Path) -> None:
    """Remove what contents.toml names. A pattern that matches nothing is no fault: the platforms
    differ, and the finished bundle is compared with its list anyway."""
    lists = tomllib.loads(CONTENTS.read_text(encoding="utf-8"))
    kept = [folder / path for path in lists["kept"]["paths"]]
    for pattern in (pattern for group in lists["removed"].values() for pattern in group):
        for path in list(folder.glob(pattern)):
            if any(path.is_relative_to(place) for place in kept):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
