"""`make icon`: assets/icon.icns, in all sizes that macOS asks for, from assets/icon.svg.

Needs rsvg-convert (`apt install librsvg2-bin`, `brew install librsvg`) and `pip install icnsutil
Pillow`. The result is committed, so nobody needs them to build the app.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ASSETS = Path(__file__).parent.parent / "assets"

SIZES = {
    "icon_16x16.png": 16,
    "icon_16x16@2x.png": 32,
    "icon_32x32.png": 32,
    "icon_32x32@2x.png": 64,
    "icon_128x128.png": 128,
    "icon_128x128@2x.png": 256,
    "icon_256x256.png": 256,
    "icon_256x256@2x.png": 512,
    "icon_512x512.png": 512,
    "icon_512x512@2x.png": 1024,
}
"""Names of an .iconset and pixels a side. Source: Apple's iconutil(1) and Human Interface
Guidelines."""


def make_icon(source: Path, into: Path) -> None:
    """Draw `source` in every size, each from the vectors, and put them into one file."""
    import icnsutil

    icon = icnsutil.IcnsFile()
    with tempfile.TemporaryDirectory() as folder:
        for name, pixels in SIZES.items():
            drawn = Path(folder) / name
            size = str(pixels)
            subprocess.run(
                ["rsvg-convert", "-w", size, "-h", size, "-o", drawn, source], check=True
            )
            if pixels <= 32 and "@2x" not in name:
                # The old small kinds are ARGB, packed; PNG is read in them by macOS 14 only here
                # and there.
                packed = drawn.with_suffix(".argb")
                image = icnsutil.ArgbImage(file=str(drawn))
                packed.write_bytes(image.argb_data())
                icon.add_media(file=str(packed), key={16: "ic04", 32: "ic05"}[pixels])
            else:
                icon.add_media(file=str(drawn))
        icon.write(str(into))


if __name__ == "__main__":
    try:
        make_icon(ASSETS / "icon.svg", ASSETS / "icon.icns")
    except (ImportError, FileNotFoundError) as error:
        sys.exit(f"icon.py: {error}. Needs rsvg-convert, and pip install icnsutil Pillow.")
