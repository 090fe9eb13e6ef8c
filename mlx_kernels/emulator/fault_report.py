"""The runtime's record of a fault as a Python exception that names the place."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mlx_kernels.emulator.faults import (
    ArrayIndex,
    DivergentBarrier,
    DivergentSimdgroup,
    InactiveLane,
    KernelFault,
    Misaligned,
    OutOfBounds,
    Place,
    Race,
    ThreadgroupMemoryExceeded,
    UninitialisedRead,
    WriteToInput,
)
from mlx_kernels.emulator.locations import INCLUDE

FAULT_NONE = 0
_NO_THREAD = 0xFFFFFFFF

# By the numbers of FaultKind in src/emulator.h.
_FAULTS: dict[int, type[KernelFault]] = {
    1: OutOfBounds,
    2: Misaligned,
    3: WriteToInput,
    4: UninitialisedRead,
    5: Race,
    6: DivergentBarrier,
    7: DivergentSimdgroup,
    8: ThreadgroupMemoryExceeded,
    9: InactiveLane,
    10: ArrayIndex,
}


class FaultRecord(ctypes.Structure):
    """Fault of src/emulator.h."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("is_write", ctypes.c_int32),
        ("buffer", ctypes.c_int32),
        ("variable", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("threadgroup", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32),
        ("other_thread", ctypes.c_uint32),
        ("other_is_write", ctypes.c_int32),
        ("other_threadgroup", ctypes.c_int32),
        ("pc", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("other_file", ctypes.c_char_p),
        ("other_line", ctypes.c_uint32),
        ("what", ctypes.c_char * 128),
    ]


def raise_fault(
    record: FaultRecord,
    buffer_names: Sequence[str | None],
    library: Path,
    library_start: int,
    runtime: ctypes.CDLL,
) -> None:
    """Raises the KernelFault that the record describes.

    buffer_names: by buffer index. library, library_start: the kernel's, to find the line of text.
    """
    fault = _FAULTS[record.kind]
    memory, bytes_of = _memory(record, buffer_names, runtime)
    file, line = (record.file.decode(), record.line) if record.file else (None, None)
    if file is None and record.pc:
        file, line = source_line(library, record.pc - library_start - 1)
    place = Place(
        memory,
        record.offset,
        record.size,
        (record.threadgroup[0], record.threadgroup[1], record.threadgroup[2]),
        record.thread,
        file,
        line,
    )
    raise fault(f"{_where(place)}: {_what(record, place, bytes_of)}", place)


def _memory(
    record: FaultRecord, buffer_names: Sequence[str | None], runtime: ctypes.CDLL
) -> tuple[str | None, int | None]:
    if record.buffer >= 0:
        return buffer_names[record.buffer], None
    if record.variable >= 0:
        runtime.emulator_variable_name.restype = ctypes.c_char_p
        runtime.emulator_variable_bytes.restype = ctypes.c_uint64
        name = runtime.emulator_variable_name(record.variable).decode()
        return name, runtime.emulator_variable_bytes(record.variable)
    return None, None


def _where(place: Place) -> str:
    at = f"{place.file}:{place.line}" if place.file else "at an unknown line"
    return f"{at}, thread {place.thread} of threadgroup {place.threadgroup}"


def _what(record: FaultRecord, place: Place, bytes_of: int | None) -> str:
    access = f"{'store' if record.is_write else 'load'} of {record.size} bytes"
    target = f"at byte {place.offset} of {place.memory}" if place.memory else "at a wild address"
    other = (
        f"thread {record.other_thread}" if record.other_thread != _NO_THREAD else "other threads"
    )
    other_place = (
        f"at {record.other_file.decode()}:{record.other_line}" if record.other_file else "ended"
    )
    match record.kind:
        case 1:
            size = f", which has {bytes_of} bytes" if bytes_of is not None else ""
            return f"{access} outside every buffer, {target}{size}"
        case 2:
            return f"{access} {target} is not aligned"
        case 3:
            return f"{access} {target}, which is an input"
        case 4:
            return f"{access} {target}, which nobody has written"
        case 5:
            earlier = "stored" if record.other_is_write else "loaded"
            whose = "of another threadgroup" if record.other_threadgroup else "without a barrier"
            return f"{access} {target} races with {other}, which {earlier} there {whose}"
        case 6:
            return f"a threadgroup barrier that not all threads reach: {other} {other_place}"
        case 7:
            reason = record.what.decode() or f"{other} {other_place}"
            return f"a SIMD function that the lanes do not reach together: {reason}"
        case 8:
            name = record.what.decode()
            return f"{record.size} bytes of threadgroup memory with {name}; Metal allows 32768"
        case 9:
            return f"a shuffle from {other}, whose lane takes no part in it"
        case _:
            return f"index {record.offset} outside an array"


@functools.lru_cache(maxsize=256)
def source_line(library: Path, address: int) -> tuple[str | None, int | None]:
    """File and line of an address in a kernel's library: the innermost place in the kernel's own
    text, not in the emulator's headers. (None, None) if the machine has no addr2line."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line-19")
    if tool is None:
        return None, None
    done = subprocess.run(
        [tool, "-i", "-e", str(library), hex(address)], capture_output=True, text=True, check=False
    )
    for found in re.finditer(r"^(.+?):(\d+)", done.stdout, re.MULTILINE):
        if not found[1].startswith(str(INCLUDE)) and found[1] != "??":
            return found[1], int(found[2])
    return None, None
