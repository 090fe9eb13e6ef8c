"""The icon has every size that macOS asks for, and is what icon.svg draws."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("icnsutil", reason="icnsutil is missing: pip install 'minicpm5-mac[packaging]'")

import icnsutil
from icon import ASSETS, make_icon

# Kinds of an icon: 16, 16@2x, 32, 32@2x, 128, 128@2x, 256, 256@2x, 512, 512@2x.
KINDS = {"ic04", "ic11", "ic05", "ic12", "ic07", "ic13", "ic08", "ic14", "ic09", "ic10"}


def test_the_icon_is_valid_and_has_all_sizes() -> None:
    path = str(ASSETS / "icon.icns")
    assert list(icnsutil.IcnsFile.verify(path)) == []
    assert set(icnsutil.IcnsFile(path).media) == KINDS


def test_the_icon_is_drawn_from_its_source(tmp_path: Path) -> None:
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is missing: apt install librsvg2-bin, brew install librsvg")
    pytest.importorskip("PIL", reason="Pillow is missing: pip install 'minicpm5-mac[packaging]'")
    from io import BytesIO

    from PIL import Image, ImageChops

    drawn = tmp_path / "icon.icns"
    make_icon(ASSETS / "icon.svg", drawn)
    for kind in ("ic12", "ic07"):
        new, kept = (
            Image.open(BytesIO(icnsutil.IcnsFile(str(path)).media[kind])).convert("RGBA")
            for path in (drawn, ASSETS / "icon.icns")
        )
        # Versions of librsvg differ in the last bits of an edge.
        difference = ImageChops.difference(new, kept).convert("L")
        assert difference.point(lambda value: 255 if value > 24 else 0).getbbox() is None
