"""Mach-O files of an app or an environment: where they run, and what they load."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from macholib.mach_o import (
    CPU_TYPE_NAMES,
    LC_BUILD_VERSION,
    LC_ID_DYLIB,
    LC_RPATH,
    LC_VERSION_MIN_MACOSX,
)
from macholib.MachO import MachO

MAGIC = {
    b"\xcf\xfa\xed\xfe",  # 64 bits, little-endian
    b"\xca\xfe\xba\xbe",  # universal
}
OF_THE_SYSTEM = ("/usr/lib/", "/System/Library/")


@dataclass(frozen=True)
class Slice:
    """One architecture of one file.

    minimum: (major, minor) of macOS, None where the file does not say.
    libraries: load commands as written. rpaths: in their order.
    """

    path: Path
    architecture: str
    minimum: tuple[int, int] | None
    libraries: tuple[str, ...]
    rpaths: tuple[str, ...]


def mach_o_files(folder: Path) -> Iterator[Path]:
    """Every Mach-O file below a folder, links left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(8)
        # A Java class has the magic of a universal file; its next number is a version, not a count.
        universal = head[:4] == b"\xca\xfe\xba\xbe" and int.from_bytes(head[4:], "big") < 20
        if head[:4] in MAGIC and (universal or head[:4] != b"\xca\xfe\xba\xbe"):
            yield path


def slices(path: Path) -> Iterator[Slice]:
    """What one file says of itself, by architecture."""
    for header in MachO(os.fspath(path)).headers:
        minimum = None
        rpaths = []
        libraries = []
        for command, detail, data in header.commands:
            if command.cmd == LC_BUILD_VERSION:
                minimum = (detail.minos >> 16, detail.minos >> 8 & 0xFF)
            elif command.cmd == LC_VERSION_MIN_MACOSX:
                minimum = (detail.version >> 16, detail.version >> 8 & 0xFF)
            elif command.cmd == LC_RPATH:
                rpaths.append(_text(data))
            elif command.cmd != LC_ID_DYLIB and hasattr(detail, "compatibility_version"):
                libraries.append(_text(data))
        yield Slice(
            path,
            CPU_TYPE_NAMES.get(header.header.cputype, str(header.header.cputype)),
            minimum,
            tuple(libraries),
            tuple(rpaths),
        )


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8")


def faults(folder: Path, newest: str, executable_folder: Path | None = None) -> list[str]:
    """What would keep a file below `folder` from loading on an arm64 Mac with macOS `newest`.

    executable_folder: what @executable_path means, where that is known.
    """
    allowed = tuple(int(part) for part in newest.split("."))
    found = []
    for path in mach_o_files(folder):
        name = path.relative_to(folder)
        mine = [piece for piece in slices(path) if piece.architecture == "ARM64"]
        if not mine:
            found.append(f"{name}: not for arm64")
        for piece in mine:
            if piece.minimum is None:
                found.append(f"{name}: says no minimum system")
            elif piece.minimum > allowed:
                found.append(f"{name}: needs macOS {piece.minimum[0]}.{piece.minimum[1]}")
            found += [
                f"{name}: finds no {library}"
                for library in piece.libraries
                if not _found(library, piece, folder, executable_folder)
            ]
    return found


def _found(library: str, piece: Slice, folder: Path, executable_folder: Path | None) -> bool:
    """As dyld looks, and inside of `folder` only: what lies outside is not on the user's Mac."""
    if library.startswith(OF_THE_SYSTEM):
        return True
    if library.startswith("@rpath/"):
        rest = library.removeprefix("@rpath/")
        places = [f"{rpath}/{rest}" for rpath in piece.rpaths]
    else:
        places = [library]
    for place in places:
        place = place.replace("@loader_path", os.fspath(piece.path.parent))
        if executable_folder is not None:
            place = place.replace("@executable_path", os.fspath(executable_folder))
        real = Path(os.path.realpath(place))
        if real.is_file() and real.is_relative_to(os.path.realpath(folder)):
            return True
    return False


def metal_faults(folder: Path) -> list[str]:
    """MLX looks for its kernels beside its library, so there must be one of each, together."""
    libraries = sorted(folder.rglob("libmlx.dylib"))
    kernels = sorted(folder.rglob("mlx.metallib"))
    if len(libraries) != 1 or len(kernels) != 1:
        return [
            f"{len(libraries)} libmlx.dylib and {len(kernels)} mlx.metallib instead of one each"
        ]
    if libraries[0].parent != kernels[0].parent:
        return [f"mlx.metallib is in {kernels[0].parent}, libmlx.dylib in {libraries[0].parent}"]
    return []
