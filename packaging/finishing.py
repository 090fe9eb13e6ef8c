"""What a bundle of py2app lacks before it can be signed."""

from __future__ import annotations

import compileall
import os
import plistlib
import py_compile
import shutil
import sysconfig
from pathlib import Path

from info_plist import without_build_machine

# Certificates of the machine that built the app (the Keychain's are used), and a leftover.
NOT_OURS = ("openssl.ca", "__pycache__")


def library(app: Path) -> Path:
    """The folder with the packages."""
    return app / "Contents/Resources/lib" / f"python{sysconfig.get_python_version()}"


def finish(app: Path, environment: Path) -> None:
    """Complete a bundle in place."""
    _self_finding_interpreter(app)
    _packages(app, environment)
    _plain_plist(app)
    for name in NOT_OURS:
        shutil.rmtree(app / "Contents" / "Resources" / name, ignore_errors=True)
    _compile(library(app))


def _self_finding_interpreter(app: Path) -> None:
    """Contents/lib → Resources/lib.

    MacOS/python looks upwards from itself for lib/pythonXY.zip (CPython's getpath.py). With this
    link it finds its library without PYTHONHOME: `-I` works, which the sandbox relies on, and no
    variable has to be passed to any process.
    """
    link = app / "Contents" / "lib"
    if not link.is_symlink():
        link.symlink_to("Resources/lib", target_is_directory=True)


def _packages(app: Path, environment: Path) -> None:
    """The environment as it is, MLX's library and metallib in it, and every licence."""
    for path in environment.iterdir():
        if path.is_dir():
            shutil.copytree(path, library(app) / path.name, dirs_exist_ok=True)
        else:
            shutil.copy(path, library(app))


def _plain_plist(app: Path) -> None:
    path = app / "Contents" / "Info.plist"
    plist = without_build_machine(plistlib.loads(path.read_bytes()))
    path.write_bytes(plistlib.dumps(plist))


def _compile(folder: Path) -> None:
    """Byte code beside the sources, never compared with them again: a file that Python writes
    into a signed app breaks its seal, and without any the app would start slowly for ever."""
    compileall.compile_dir(
        folder,
        quiet=2,
        workers=0,  # as many as there are cores
        stripdir=os.fspath(folder),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
