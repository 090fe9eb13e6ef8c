"""Where the emulator's own files are, and where it keeps what it compiles."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).parent
INCLUDE = PACKAGE / "include"
STRICT_INCLUDE = PACKAGE / "strict_include"
SOURCES = PACKAGE / "src"

CACHE_VARIABLE = "MLX_KERNELS_CACHE"


def cache_folder() -> Path:
    """The folder of compiled kernels: $MLX_KERNELS_CACHE, else the user's cache folder."""
    folder = os.environ.get(CACHE_VARIABLE)
    path = Path(folder) if folder else Path(platformdirs.user_cache_dir("mlx_kernels")) / "emulator"
    path.mkdir(parents=True, exist_ok=True)
    return path


def mlx_include() -> Path:
    """The include folder of the installed MLX wheel, with Apple's kernel headers."""
    # Of the namespace package, without loading MLX's library.
    import importlib.util

    spec = importlib.util.find_spec("mlx.core")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("MLX is not installed: pip install 'mlx[cpu]'")
    return Path(spec.origin).parent / "include"


def is_metal(file: str) -> bool:
    """Whether a file of a preprocessed text is Metal: neither one of the emulator's own headers nor
    the compiler's own definitions. A kernel's generated function is in `<stdin>`."""
    if file.startswith("<"):
        return file == "<stdin>"
    return not file.startswith((str(INCLUDE), str(STRICT_INCLUDE)))
