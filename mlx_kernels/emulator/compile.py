"""Kernel text to a loaded library: preprocessed, turned into C++, compiled, cached by content."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mlx_kernels.emulator.bindings import Binding, bindings_of
from mlx_kernels.emulator.cpp_text import as_cpp
from mlx_kernels.emulator.faults import CompileFailed
from mlx_kernels.emulator.locations import INCLUDE, SOURCES, cache_folder, is_metal, mlx_include
from mlx_kernels.emulator.metal_text import FunctionConstants
from mlx_kernels.emulator.signature import KernelText
from mlx_kernels.emulator.toolchain import Compiler, compiler

_RUNTIME_FLAGS = ["-std=c++17", "-O2", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti"]

# Metal 3.2, what macOS 15 compiles with: MLX's get_metal_version.
METAL_VERSION = 320
PREDEFINED = ["-D__METAL__=1", f"-D__METAL_VERSION__={METAL_VERSION}", "-DMLX_METAL_JIT=1"]

# The kernel is called through a pointer that the compiler cannot see through: inlined into the
# launcher, which reads the runtime's own memory, its accesses would go unseen.
_LAUNCHER = """
# 1 "launcher"
namespace emulated {
using kernel_type = decltype(@function@);
static kernel_type* volatile kernel_function = &@function@;
}  // namespace emulated
extern "C" __attribute__((visibility("default"), no_sanitize("thread", "undefined"))) void
emulator_launch(void* const* buffers, const uint* position) {
  using namespace emulated;
  kernel_function(@arguments@);
}
"""

# Places of the attributes in the runtime's Position (src/emulator.h), in words.
_POSITION_WORDS = {
    "thread_position_in_grid": 0,
    "thread_position_in_threadgroup": 3,
    "threadgroup_position_in_grid": 6,
    "threads_per_threadgroup": 9,
    "dispatch_threads_per_threadgroup": 12,
    "threads_per_grid": 15,
    "grid_size": 15,
    "threadgroups_per_grid": 18,
    "thread_index_in_threadgroup": 21,
    "thread_index_in_simdgroup": 22,
    "simdgroup_index_in_threadgroup": 23,
    "simdgroups_per_threadgroup": 24,
    "dispatch_simdgroups_per_threadgroup": 25,
    "threads_per_simdgroup": 26,
    "thread_execution_width": 26,
    "thread_index_in_quadgroup": 27,
    "quadgroup_index_in_threadgroup": 28,
    "quadgroups_per_threadgroup": 29,
    "dispatch_quadgroups_per_threadgroup": 30,
    "grid_origin": 31,
}


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel ready to run. library: the shared object; launch: the address of its entry."""

    library: Path
    launch: int


@functools.cache
def runtime() -> ctypes.CDLL:
    """The emulator's runtime, compiled once a machine."""
    return ctypes.CDLL(str(_runtime_path()))


def compiled(
    kernel: KernelText, function_constants: FunctionConstants | None = None
) -> CompiledKernel:
    """Compiles a kernel, or takes it from the cache.

    function_constants: values by index, for text with `[[function_constant(i)]]`.
    Raises CompileFailed with the compiler's message, CompilerMissing without a compiler.
    """
    return _compiled(kernel, tuple(sorted((function_constants or {}).items())))


@functools.lru_cache(maxsize=512)
def _compiled(
    kernel: KernelText, function_constants: tuple[tuple[int, bool | int | float], ...]
) -> CompiledKernel:
    runtime()
    build = compiler()
    key = _digest(
        _environment_digest(),
        kernel.text,
        kernel.function,
        kernel.template_arguments,
        repr(function_constants),
    )
    path = cache_folder() / f"{kernel.function[:60]}-{key}.so"
    if not path.exists():
        preprocessed = _preprocess(build, kernel.text)
        text = as_cpp(preprocessed, dict(function_constants), is_metal)
        text += _launcher(kernel, bindings_of(preprocessed, kernel.function))
        _compile(build, text, path)
    library = ctypes.CDLL(str(path))
    launch = ctypes.cast(library.emulator_launch, ctypes.c_void_p).value
    assert launch is not None
    return CompiledKernel(path, launch)


def _launcher(kernel: KernelText, bindings: list[Binding]) -> str:
    function = kernel.function
    if kernel.template_arguments:
        function += f"<{kernel.template_arguments}>"
    arguments = []
    for place, binding in enumerate(bindings):
        kind = f"parameter<kernel_type, {place}>::type"
        if binding.index is not None:
            arguments.append(f"buffer_argument<{kind}>::from(buffers[{binding.index}])")
        elif binding.attribute in _POSITION_WORDS:
            word = _POSITION_WORDS[binding.attribute]
            arguments.append(f"attribute_argument<{kind}>::from(position + {word})")
        else:
            raise CompileFailed(f"the emulator has no attribute [[{binding.attribute}]]")
    return _LAUNCHER.replace("@function@", function).replace("@arguments@", ", ".join(arguments))


def _preprocess(build: Compiler, text: str) -> str:
    command = [build.path, "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++", "-w"]
    command += [*PREDEFINED, f"-I{INCLUDE}", f"-I{mlx_include()}", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileFailed(_message(done.stderr))
    return done.stdout


def _compile(build: Compiler, text: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, made = Path(folder) / "kernel.ii", Path(folder) / "kernel.so"
        source.write_text(text, encoding="utf-8")
        object_file = Path(folder) / "kernel.o"
        flags = build.kernel_flags()
        _run(
            [build.path, *flags, "-c", "-x", "c++-cpp-output", str(source), "-o", str(object_file)]
        )
        # Without -fsanitize: the runtime has the functions that the sanitizer's library would have.
        link = [build.path, "-shared", "-nostdlib", "-Wl,-z,defs", str(object_file)]
        _run([*link, str(_runtime_path()), "-lm", "-lgcc", "-lc", "-o", str(made)])
        made.replace(path)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileFailed(_message(done.stderr))


def _message(stderr: str) -> str:
    """The compiler's errors without what follows from them."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error:|undefined reference", line)]
    return "\n".join((errors or lines)[:12]) or "the compiler failed without a message"


@functools.cache
def _runtime_path() -> Path:
    build = compiler()
    sources = sorted(SOURCES.glob("*.cpp"))
    key = _digest(build.identity, *(p.read_text() for p in sorted(SOURCES.iterdir())))
    path = cache_folder() / f"runtime-{key}.so"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}.tmp")
        _run([build.path, *_RUNTIME_FLAGS, *map(str, sources), "-ldl", "-o", str(made)])
        made.replace(path)
    return path


@functools.cache
def _environment_digest() -> str:
    """Everything beside a kernel's own text that its library depends on."""
    build = compiler()
    headers = sorted(p for p in INCLUDE.rglob("*") if p.is_file())
    own = [*headers, *sorted(Path(__file__).parent.glob("*.py"))]
    return _digest(
        build.identity,
        repr(build.kernel_flags()),
        str(_runtime_path()),
        metadata.version("mlx"),
        # A fault is placed by the paths in the library, and another checkout's differ.
        str(INCLUDE),
        str(mlx_include()),
        *(p.read_text(encoding="utf-8") for p in own),
    )


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:32]
