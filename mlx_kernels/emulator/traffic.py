"""What a run moved: bytes that the kernel's text loads and stores, before any cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """Loads and stores of one buffer.

    buffer_bytes: size of the array. loaded, stored: bytes, a byte counted as often as it is
    accessed. simdgroup_loads: loads that the lanes of a simdgroup issue together, where adjacent
    loads of a lane up to 16 bytes are one. scattered_loads: those that span more bytes than their
    lanes use, that is, are not contiguous.
    """

    buffer_bytes: int
    loaded: int
    stored: int
    simdgroup_loads: int
    scattered_loads: int

    @property
    def load_ratio(self) -> float:
        """Bytes loaded, as a multiple of the array's size."""
        return self.loaded / self.buffer_bytes if self.buffer_bytes else 0.0
