"""Every library of the app runs on arm64 with macOS 14, and finds inside of it what it loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from mach_o_writer import X86_64, write_mach_o

pytest.importorskip("macholib", reason="macholib is missing: pip install 'minicpm5-mac[packaging]'")

from mach_o import faults, mach_o_files, metal_faults


def test_what_is_found_beside_itself_is_no_fault(tmp_path: Path) -> None:
    write_mach_o(tmp_path / "mlx/lib/libmlx.dylib", libraries=("/usr/lib/libc++.1.dylib",))
    write_mach_o(
        tmp_path / "mlx/core.so",
        libraries=("@rpath/libmlx.dylib", "@loader_path/lib/libmlx.dylib"),
        rpaths=("@loader_path/none", "@loader_path/lib"),
    )
    assert len(list(mach_o_files(tmp_path))) == 2
    assert faults(tmp_path, "14.0") == []


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"cpu": X86_64}, "not for arm64"),
        ({"minimum": (14, 1)}, "needs macOS 14.1"),
        ({"minimum": (26, 2)}, "needs macOS 26.2"),
        ({"libraries": ("@rpath/libmlx.dylib",)}, "finds no @rpath/libmlx.dylib"),
        ({"libraries": ("@loader_path/libmlx.dylib",)}, "finds no @loader_path/libmlx.dylib"),
        ({"libraries": ("/opt/homebrew/lib/libfoo.dylib",)}, "finds no /opt/homebrew"),
        (
            {"libraries": ("@rpath/libmlx.dylib",), "rpaths": ("/opt/homebrew/lib",)},
            "finds no @rpath/libmlx.dylib",
        ),
    ],
)
def test_what_would_not_load_is_told(tmp_path: Path, said: dict, fault: str) -> None:
    write_mach_o(tmp_path / "core.so", **said)
    (told,) = faults(tmp_path, "14.0")
    assert told.startswith("core.so: ")
    assert fault in told


def test_an_older_minimum_is_no_fault(tmp_path: Path) -> None:
    write_mach_o(tmp_path / "old.so", minimum=(11, 0))
    assert faults(tmp_path, "14.0") == []


def test_a_library_outside_of_the_app_is_not_found(tmp_path: Path) -> None:
    write_mach_o(tmp_path / "libfoo.dylib")
    write_mach_o(tmp_path / "app/core.so", libraries=("@loader_path/../libfoo.dylib",))
    assert faults(tmp_path / "app", "14.0") == [
        "core.so: finds no @loader_path/../libfoo.dylib",
    ]


def test_java_classes_and_text_are_not_mach_o(tmp_path: Path) -> None:
    (tmp_path / "A.class").write_bytes(b"\xca\xfe\xba\xbe\x00\x00\x00\x34")
    (tmp_path / "a.py").write_text("print()")
    assert list(mach_o_files(tmp_path)) == []


@pytest.mark.parametrize(
    ("files", "well"),
    [
        (("lib/libmlx.dylib", "lib/mlx.metallib"), True),
        (("lib/libmlx.dylib",), False),
        (("lib/libmlx.dylib", "mlx.metallib"), False),
        (("lib/libmlx.dylib", "Frameworks/libmlx.dylib", "lib/mlx.metallib"), False),
        ((), False),
    ],
)
def test_mlx_has_one_library_and_its_kernels_beside_it(
    tmp_path: Path, files: tuple[str, ...], well: bool
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).touch()
    assert (metal_faults(tmp_path) == []) is well
