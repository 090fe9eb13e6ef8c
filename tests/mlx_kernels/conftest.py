"""What tests of kernels need: the emulator's compiler, and models small enough for it."""

from __future__ import annotations

import pytest


@pytest.fixture
def compiler_here() -> None:
    """Skips, with what to install, where no compiler builds kernels for the CPU."""
    from mlx_kernels.emulator.faults import CompilerMissing
    from mlx_kernels.emulator.toolchain import compiler

    try:
        compiler()
    except CompilerMissing as missing:
        pytest.skip(str(missing))
