"""OpenBLAS in front of the reference BLAS that MLX's Linux wheel carries.

`mlx-cpu` 0.32.4 links a reference BLAS: a float32 512×512×512 product ran at 2.6 GFLOP/s with it
and at 105 GFLOP/s with Debian's libopenblas0-pthread in front (2 cores, measured). A library that
is loaded with its symbols global before MLX is loaded answers MLX's calls, so no environment
variable and no second start of the process is needed. On a Mac none of this applies.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_PATTERNS = (
    "/usr/lib/*/openblas-pthread/libopenblas.so.0",
    "/usr/lib/*/openblas-openmp/libopenblas.so.0",
    "/usr/lib64/libopenblasp.so.0",
    "/usr/lib64/libopenblas.so.0",
    "/usr/lib/libopenblas.so.0",
)

_loaded = False


def preload() -> bool:
    """Load OpenBLAS before MLX; whether MLX uses it in this process.

    Does nothing, and says no, where there is none, where MLX is loaded already, and off Linux.
    """
    global _loaded
    if _loaded:
        return True
    if sys.platform != "linux" or "mlx.core" in sys.modules:
        return False
    for pattern in _PATTERNS:
        for path in sorted(Path("/").glob(pattern[1:])):
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
            _loaded = True
            return True
    return False
