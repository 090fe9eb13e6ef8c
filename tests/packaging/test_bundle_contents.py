"""A bundle is compared with the list: what is missing, what is too much, what leaks a path."""

from __future__ import annotations

import os
import plistlib
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("macholib", reason="macholib is missing: pip install 'minicpm5-mac[packaging]'")

from bundle_contents import content_faults, path_leaks, plist_faults
from environment import CONTENTS, REPOSITORY, trim
from finishing import library
from info_plist import info_plist

LISTS = tomllib.loads(CONTENTS.read_text(encoding="utf-8"))


def made(app: Path, pattern: str) -> Path:
    """A file that fits a pattern of the list."""
    inside = os.fspath(library(app).relative_to(app / "Contents"))
    name = pattern.replace("LIB", inside).replace("**/", f"{inside}/deep/").replace("*", "0")
    path = app / "Contents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.touch()
    return path


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A bundle that is as it should be, of empty files."""
    app = tmp_path / "MiniCPM5.app"
    library(app).mkdir(parents=True)
    (app / "Contents" / "lib").symlink_to("Resources/lib")
    held = [*LISTS["held"]["paths"], *LISTS["held"]["paths_on_a_mac"]]
    for pattern in sorted(held, key=len, reverse=True):
        made(app, pattern)
    (app / "Contents" / "Info.plist").write_bytes(plistlib.dumps(info_plist()))
    return app


def test_a_bundle_as_it_should_be(app: Path) -> None:
    assert content_faults(app, mac=True) == []
    assert plist_faults(app) == []
    assert path_leaks(app) == []


@pytest.mark.parametrize("pattern", LISTS["held"]["paths_on_a_mac"])
def test_what_is_forgotten_is_told(app: Path, pattern: str) -> None:
    path = made(app, pattern)
    path.rename(app.parent / "gone")
    assert f"missing: {pattern}" in content_faults(app, mac=True)


@pytest.mark.parametrize("pattern", LISTS["left_out"]["paths"])
def test_what_does_not_belong_is_told(app: Path, pattern: str) -> None:
    path = made(app, pattern)
    told = content_faults(app, mac=True)
    assert f"should not be there: {path.relative_to(app / 'Contents')}" in told


@pytest.mark.parametrize("key", sorted(info_plist()))
def test_a_missing_key_is_told(app: Path, key: str) -> None:
    path = app / "Contents" / "Info.plist"
    path.write_bytes(plistlib.dumps({k: v for k, v in info_plist().items() if k != key}))
    assert plist_faults(app) == [f"Info.plist: {key} is None"]


def test_a_build_path_is_told(app: Path) -> None:
    boot = app / "Contents" / "Resources" / "__boot__.py"
    boot.write_text(f"DEFAULT_SCRIPT={os.fspath(REPOSITORY / 'packaging/MiniCPM5.py')!r}")
    assert path_leaks(app) == [f"Resources/__boot__.py: has {REPOSITORY}"]


@pytest.mark.parametrize("target", ["/usr/lib", "../../../elsewhere"])
def test_a_link_out_of_the_app_is_told(app: Path, target: str) -> None:
    (app / "Contents" / "out").symlink_to(target)
    assert path_leaks(app) == ["out: links out of the app"]


def test_trimming_takes_what_is_listed_and_nothing_that_is_kept(tmp_path: Path) -> None:
    gone = ["numpy/_core/tests/a.py", "bin/hf", "mlx/include/mlx.h", "PyObjCTest/x.so"]
    gone += ["mlx_kernels/emulator/arrays.py", "transformers/models/bert/modeling_bert.py"]
    gone += ["minicpm5_mac-0.1.0.dist-info/direct_url.json", "numpy/__pycache__/a.pyc"]
    stay = ["transformers/models/auto/modeling_auto.py", "mlx/lib/mlx.metallib", "numpy/testing.py"]
    stay += ["transformers/models/bert/configuration_bert.py", "numpy-2.dist-info/METADATA"]
    for name in [*gone, *stay]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    trim(tmp_path)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(stay)
