"""The compilers of this machine: the one that builds kernels, and clang for the strict check."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mlx_kernels.emulator.faults import CompilerMissing

COMPILER_VARIABLE = "MLX_KERNELS_CXX"
OLDEST_STRICT_CLANG = 16

_INSTALL = "Install one: apt install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora)."
INSTALL_CLANG = "apt install clang-19 (Debian, Ubuntu), brew install llvm (macOS)"

# Register arrays and loops stay as the text has them: no vector code, no loops turned into memset,
# no fused multiply-adds; uninitialised variables hold a pattern instead of what happens to
# be there.
_COMMON = [
    "-std=c++17",
    "-O2",
    "-g1",
    "-fPIC",
    "-w",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-delete-null-pointer-checks",
    "-ftrivial-auto-var-init=pattern",
    "-fsanitize=thread",
    "-fsanitize=bounds,alignment",
]
_GCC = [
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-tree-loop-distribute-patterns",
    "-fno-store-merging",
    "--param=tsan-instrument-func-entry-exit=0",
]
_CLANG = [
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    # Also a load just before a store to the same address.
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
]


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler. identity: its version line, part of the cache's keys."""

    path: str
    is_clang: bool
    identity: str

    def kernel_flags(self) -> list[str]:
        """Flags for the text of a kernel."""
        return [*_COMMON, *(_CLANG if self.is_clang else _GCC), *machine_flags()]


@functools.cache
def compiler() -> Compiler:
    """The compiler for kernels: $MLX_KERNELS_CXX, else g++, else clang++.

    Raises CompilerMissing with the way to install one.
    """
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise CompilerMissing(
            "The kernel emulator runs on Linux, on x86-64 and aarch64; "
            f"this is {platform.system()} on {platform.machine()}. On a Mac, run the kernels on "
            "its GPU instead."
        )
    wanted = os.environ.get(COMPILER_VARIABLE)
    for name in [wanted] if wanted else ["g++", *clang_names("clang++")]:
        if path := shutil.which(name):
            version = _run_version(path)
            return Compiler(path, "clang" in version, version.splitlines()[0])
    looked = f"{wanted} (from ${COMPILER_VARIABLE})" if wanted else "g++ or clang++"
    raise CompilerMissing(
        f"The kernel emulator needs a C++ compiler: no {looked} found. {_INSTALL}"
    )


def strict_clang() -> str | None:
    """The path of a clang++ of version 16 or newer, or None."""
    for name in clang_names("clang++"):
        path = shutil.which(name)
        if path and (clang_version(path) or 0) >= OLDEST_STRICT_CLANG:
            return path
    return None


def clang_names(name: str) -> list[str]:
    """Names under which distributions and Homebrew install clang, newest first."""
    versions = [f"{name}-{n}" for n in range(23, OLDEST_STRICT_CLANG - 1, -1)]
    return [
        name,
        *versions,
        f"/opt/homebrew/opt/llvm/bin/{name}",
        f"/usr/local/opt/llvm/bin/{name}",
    ]


@functools.cache
def clang_version(path: str) -> int | None:
    """The major version of a clang that is not Apple's (which numbers otherwise), or None."""
    found = re.search(r"^(?!Apple).*clang version (\d+)", _run_version(path))
    return int(found[1]) if found else None


@functools.cache
def _run_version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def machine_flags() -> tuple[str, ...]:
    """-mf16c where the processor converts half floats itself."""
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not cpuinfo.exists():
        return ()
    return ("-mf16c",) if re.search(r"\bf16c\b", cpuinfo.read_text()) else ()
