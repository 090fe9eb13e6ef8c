"""Runs this package's kernels in the emulator, as a launch that its functions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx

from mlx_kernels.emulator import LaunchReport, strict_check
from mlx_kernels.kernel import Kernel


@dataclass
class Emulated:
    """A launch: call it as metal_launch. reports: of every kernel that ran, by its name.

    garbage: what outputs hold before, and keep where the kernel writes nothing.
    """

    orders: Sequence[str] = ("forward",)
    strict: bool = False
    garbage: float | None = None
    reports: list[tuple[str, LaunchReport]] = field(default_factory=list)

    def __call__(self, kernel: Kernel, **call: Any) -> list[mx.array]:
        if self.strict:
            read = ("inputs", "template", "output_dtypes")
            strict_check(kernel, **{name: call[name] for name in read})
        done = kernel.emulate(**call, orders=self.orders, init_value=self.garbage)
        self.reports.append((kernel.name, done.report))
        return done.outputs
