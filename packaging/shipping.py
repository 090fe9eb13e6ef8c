"""What is passed on: notarised where there are credentials, in a disk image, with a checksum.

Only on a Mac: notarytool, stapler, ditto and hdiutil are Apple's.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path


def notarise(app: Path, profile: str, folder: Path) -> None:
    """Send the app to Apple, wait, and staple the ticket to it.

    profile: a name stored before by `xcrun notarytool store-credentials NAME`.
    Raises subprocess.CalledProcessError; `xcrun notarytool log ID` says what Apple found.
    """
    sent = folder / f"{app.stem}-notarise.zip"
    subprocess.run(["ditto", "-c", "-k", "--keepParent", app, sent], check=True)
    subprocess.run(
        ["xcrun", "notarytool", "submit", sent, "--keychain-profile", profile, "--wait"], check=True
    )
    sent.unlink()
    subprocess.run(["xcrun", "stapler", "staple", app], check=True)
    subprocess.run(["xcrun", "stapler", "validate", app], check=True)


def disk_image(app: Path, version: str, folder: Path) -> Path:
    """A compressed, read-only image with the app and a link to /Applications; returns its path."""
    image = folder / f"{app.stem}-{version}-arm64.dmg"
    image.unlink(missing_ok=True)
    staged = folder / "image"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    # ditto keeps links and seals, which a plain copy may not.
    subprocess.run(["ditto", app, staged / app.name], check=True)
    (staged / "Applications").symlink_to("/Applications")
    subprocess.run(
        [
            *("hdiutil", "create", "-quiet", "-volname", f"{app.stem} {version}"),
            *("-srcfolder", staged, "-format", "ULMO", "-fs", "APFS", image),
        ],
        check=True,
    )
    return image


def checksum(path: Path) -> Path:
    """Write `PATH.sha256`, which `shasum -a 256 -c` reads; returns its path."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    written = path.with_name(path.name + ".sha256")
    written.write_text(f"{digest.hexdigest()}  {path.name}\n", encoding="utf-8")
    return written
