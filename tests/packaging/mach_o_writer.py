"""The smallest Mach-O files: a header and load commands, nothing that runs.

Source of the format: <mach-o/loader.h>.
"""

from __future__ import annotations

import struct
from pathlib import Path

ARM64, X86_64 = 0x0100000C, 0x01000007
MH_DYLIB = 6
LC_LOAD_DYLIB, LC_RPATH, LC_BUILD_VERSION = 0xC, 0x8000001C, 0x32


def write_mach_o(
    path: Path,
    *,
    cpu: int = ARM64,
    minimum: tuple[int, int] = (14, 0),
    libraries: tuple[str, ...] = (),
    rpaths: tuple[str, ...] = (),
) -> Path:
    """One dylib that says what is asked."""
    commands = [
        struct.pack("<6I", LC_BUILD_VERSION, 24, 1, minimum[0] << 16 | minimum[1] << 8, 0, 0)
    ]
    for library in libraries:
        text = _padded(library)
        commands.append(struct.pack("<6I", LC_LOAD_DYLIB, 24 + len(text), 24, 0, 0, 0) + text)
    for rpath in rpaths:
        text = _padded(rpath, 12)
        commands.append(struct.pack("<3I", LC_RPATH, 12 + len(text), 12) + text)
    body = b"".join(commands)
    header = struct.pack("<8I", 0xFEEDFACF, cpu, 0, MH_DYLIB, len(commands), len(body), 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + body)
    return path


def _padded(text: str, before: int = 24) -> bytes:
    data = text.encode() + b"\0"
    return data + b"\0" * (-(before + len(data)) % 8)
