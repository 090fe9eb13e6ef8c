"""Signing, from the inside out: a seal over a bundle covers the seals of what is in it.

Only on a Mac: `codesign` is Apple's. Source of the order: Apple's technical note 2206; of the
options: "Notarizing macOS software before distribution".
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from mach_o import mach_o_files

AD_HOC = "-"


def sign(app: Path, identity: str = AD_HOC) -> None:
    """Sign every Mach-O file, then the frameworks, then the app, and verify the whole.

    identity: a "Developer ID Application: …" of the keychain, or AD_HOC, which macOS runs on the
        machine that built the app, and elsewhere after `xattr -cr MiniCPM5.app`.
    Raises subprocess.CalledProcessError, after codesign has said why.
    """
    for path in inside_out(app):
        _codesign(path, identity)
    _codesign(app, identity)
    subprocess.run(["codesign", "--verify", "--deep", "--strict", app], check=True)


def inside_out(app: Path) -> list[Path]:
    """What is signed before the app itself, deepest first; its main program is part of its seal."""
    main = app / "Contents" / "MacOS" / app.stem
    files = [path for path in mach_o_files(app) if path != main]
    frameworks = [path for path in app.rglob("*.framework") if not path.is_symlink()]
    versions = [
        version
        for framework in frameworks
        for version in (framework / "Versions").glob("*")
        if not version.is_symlink()
    ]
    # A framework's own binary is signed with its folder.
    bare = [path for path in files if not any(path.parent == folder for folder in versions)]
    return sorted([*bare, *versions], key=lambda path: (-len(path.parts), path))


def _codesign(path: Path, identity: str) -> None:
    subprocess.run(codesign_command(path, identity), check=True)


def codesign_command(path: Path, identity: str) -> list[str]:
    """With an identity: hardened runtime and Apple's time stamp, which notarisation asks for.

    No entitlements: neither MLX nor CPython writes code at run time. Should a Mac show that a
    library of another team is refused, com.apple.security.cs.disable-library-validation is the one.
    """
    hardened = [] if identity == AD_HOC else ["--options", "runtime", "--timestamp"]
    return ["codesign", "--force", "--sign", identity, *hardened, os.fspath(path)]
