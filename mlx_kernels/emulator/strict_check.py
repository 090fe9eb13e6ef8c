"""Checks a kernel's text as Apple's compiler would, as far as clang can tell.

Address spaces are real ones (`__attribute__((address_space(n)))`), templates are instantiated, and
what Metal forbids is refused: by its tokens (forbidden.py), and, for what only shows after
instantiation, by the code that clang makes of it: recursion, calls through pointers, double.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlx_kernels.emulator.arrays import host_array
from mlx_kernels.emulator.compile import PREDEFINED
from mlx_kernels.emulator.faults import EmulatorError
from mlx_kernels.emulator.forbidden import forbidden_in
from mlx_kernels.emulator.locations import INCLUDE, STRICT_INCLUDE, is_metal, mlx_include
from mlx_kernels.emulator.metal_text import FunctionConstants
from mlx_kernels.emulator.signature import PRELUDE, KernelText, kernel_text
from mlx_kernels.emulator.strict_text import as_strict_cpp
from mlx_kernels.emulator.toolchain import INSTALL_CLANG, OLDEST_STRICT_CLANG, strict_clang
from mlx_kernels.kernel import Kernel, marked_text


class StrictCheckUnavailable(EmulatorError):
    """There is no clang of version 16 or newer."""


class StrictCheckFailed(EmulatorError):
    """The text is not Metal; the message has a line for each finding."""


_LANGUAGE = ["-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++", "-w"]
_TO_LLVM = ["-O0", "-S", "-emit-llvm", "-Wno-invalid-constexpr", "-ferror-limit=20"]

# Numbers of Apple's compiler (AIR) for device, constant and threadgroup.
_SPACES = """
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define thread
#define kernel
"""


def strict_check(
    kernel: Kernel,
    *,
    inputs: Sequence[Any],
    output_dtypes: Sequence[Any],
    template: Sequence[tuple[str, Any]] = (),
) -> None:
    """Checks the text that MLX would compile for a call of this kernel.

    inputs, template, output_dtypes: as for `emulate`; of the inputs only dtypes and shapes count.
    Raises StrictCheckFailed, StrictCheckUnavailable.
    """
    arrays = [host_array(x, row_contiguous=kernel.ensure_row_contiguous) for x in inputs]
    strict_check_text(kernel_text(kernel, arrays, template, output_dtypes))


def strict_check_header(path: Path) -> None:
    """Checks a file of functions, as it stands: templates that nobody instantiates are only parsed.

    Raises StrictCheckFailed, StrictCheckUnavailable.
    """
    strict_check_text(KernelText("", "", PRELUDE + marked_text(path)))


def strict_check_text(
    kernel: KernelText, function_constants: FunctionConstants | None = None
) -> None:
    """Checks a whole text and instantiates its kernel (none if it names no function).

    Raises StrictCheckFailed, StrictCheckUnavailable.
    """
    clang = strict_clang()
    if clang is None:
        raise StrictCheckUnavailable(
            f"The strict check needs clang {OLDEST_STRICT_CLANG} or newer: {INSTALL_CLANG}"
        )
    includes = [f"-I{folder}" for folder in (STRICT_INCLUDE, INCLUDE, mlx_include())]
    preprocessed = _run([clang, "-E", *_LANGUAGE, *PREDEFINED, *includes, "-"], kernel.text)
    findings = [str(finding) for finding in forbidden_in(preprocessed, is_metal)]
    text = _SPACES + as_strict_cpp(preprocessed, function_constants or {}, is_metal)
    if kernel.function:
        arguments = f"<{kernel.template_arguments}>" if kernel.template_arguments else ""
        text += f'\n# 1 "instantiation"\nauto* strict_kernel = &{kernel.function}{arguments};\n'
    if findings:
        raise StrictCheckFailed("\n".join(findings))
    made = _run([clang, *_LANGUAGE, *_TO_LLVM, "-o", "-", "-"], text)
    findings = code_findings(made)
    if findings:
        raise StrictCheckFailed("\n".join(findings))


def _run(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        raise StrictCheckFailed("\n".join(errors) or done.stderr)
    return done.stdout


# The calling convention names double too, for two floats at once: only arithmetic counts.
_DOUBLE = re.compile(
    r"= f(?:add|sub|mul|div|rem|neg|cmp)\b.*\bdouble\b"
    r"|= (?:fpext|sitofp|uitofp)\b.* to double\b|= (?:fptrunc|fptosi|fptoui) double\b"
)
_DEFINE = re.compile(r'^define [^@]*@"?([^"(]+)"?\(')
_CALL = re.compile(
    r"\b(?:call|invoke)\b[^@%]*?(?:@\"?(?P<callee>[^\"( ]+)\"?|(?P<pointer>%\S+?))\("
)


def code_findings(llvm: str) -> list[str]:
    """What Metal forbids in the code of functions, from clang's LLVM assembly: recursion, calls
    through pointers (also of virtual functions), and arithmetic in double."""
    calls: dict[str, set[str]] = {}
    findings: list[str] = []
    current: str | None = None
    for line in llvm.splitlines():
        if found := _DEFINE.match(line):
            current = str(found[1])
            calls[current] = set()
        elif line.startswith("}"):
            current = None
        elif current is not None:
            name = readable(current)
            if _DOUBLE.search(line):
                findings.append(f"{name}: Metal has no double, and this computes with one")
            if call := _CALL.search(line):
                if call["pointer"]:
                    findings.append(f"{name}: Metal has no calls through pointers to functions")
                else:
                    calls[current].add(call["callee"])
    findings += [f"{readable(name)}: Metal has no recursion" for name in _recursive(calls)]
    return list(dict.fromkeys(findings))


def _recursive(calls: Mapping[str, set[str]]) -> list[str]:
    """The functions that can reach themselves."""
    reached: list[str] = []
    for start in calls:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for callee in calls.get(stack.pop(), ()):
                if callee == start:
                    reached.append(start)
                    stack = []
                    break
                if callee in calls and callee not in seen:
                    seen.add(callee)
                    stack.append(callee)
    return reached


def readable(mangled: str) -> str:
    """The name of a function in its mangled form, without its parameters."""
    parts: list[str] = []
    i = mangled.find("_Z") + 2
    if i < 2:
        return mangled
    while i < len(mangled) and mangled[i] in "NKL":
        i += 1
    while found := re.compile(r"(\d+)").match(mangled, i):
        length = int(found[1])
        parts.append(mangled[found.end() : found.end() + length])
        i = found.end() + length
    return "::".join(parts) or mangled
