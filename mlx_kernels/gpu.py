"""The GPU of this machine, as far as a launch or a measurement depends on it. macOS only."""

from __future__ import annotations

import functools
import re
import subprocess

import mlx.core as mx

# What the smallest Apple Silicon chip has (M1, 7 or 8 cores), where the system does not say.
FEWEST_CORES = 7

_IOREG = ("/usr/sbin/ioreg", "-r", "-c", "AGXAccelerator", "-d", "1")
_CORES = re.compile(r'"gpu-core-count"\s*=\s*(\d+)')


def has_metal() -> bool:
    """Whether MLX runs on a Metal GPU here."""
    return mx.metal.is_available() and mx.default_device().type == mx.DeviceType.gpu


def chip_name() -> str:
    """Such as "Apple M4 Pro"."""
    return str(mx.device_info().get("device_name", "unknown"))


@functools.cache
def core_count() -> int:
    """Cores of the GPU, from the I/O registry; FEWEST_CORES if it does not tell."""
    try:
        told = subprocess.run(_IOREG, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return FEWEST_CORES
    return cores_in(told.stdout) or FEWEST_CORES


def cores_in(registry: str) -> int | None:
    """The number of GPU cores in what ioreg prints of AGXAccelerator, or None."""
    found = _CORES.search(registry)
    return int(found[1]) if found else None
