"""Signing goes from the inside out, and is hardened exactly where there is an identity."""

from __future__ import annotations

from pathlib import Path

import pytest
from mach_o_writer import write_mach_o

pytest.importorskip("macholib", reason="macholib is missing: pip install 'minicpm5-mac[packaging]'")

from signing import AD_HOC, codesign_command, inside_out


def test_what_is_inside_comes_first_and_the_main_program_with_the_app(tmp_path: Path) -> None:
    app = tmp_path / "MiniCPM5.app"
    contents = app / "Contents"
    framework = contents / "Frameworks/Python.framework"
    write_mach_o(contents / "MacOS/MiniCPM5")
    python = write_mach_o(contents / "MacOS/python")
    core = write_mach_o(contents / "Resources/lib/python3.12/mlx/core.so")
    mlx = write_mach_o(contents / "Resources/lib/python3.12/mlx/lib/libmlx.dylib")
    write_mach_o(framework / "Versions/3.12/Python")
    (framework / "Versions/Current").symlink_to("3.12")
    (framework / "Python").symlink_to("Versions/Current/Python")
    (contents / "lib").symlink_to("Resources/lib")

    order = inside_out(app)

    assert sorted(order) == sorted([python, core, mlx, framework / "Versions/3.12"])
    assert order.index(mlx) < order.index(core) < order.index(python)
    depths = [len(path.parts) for path in order]
    assert depths == sorted(depths, reverse=True)


def test_the_hardened_runtime_goes_with_an_identity() -> None:
    ad_hoc = codesign_command(Path("x"), AD_HOC)
    signed = codesign_command(Path("x"), "Developer ID Application: Somebody (TEAM)")
    assert ad_hoc == ["codesign", "--force", "--sign", "-", "x"]
    assert signed[-4:] == ["--options", "runtime", "--timestamp", "x"]
    assert "--deep" not in signed
