"""Kernels written for a test, and the compiler they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlx_kernels.emulator.faults import CompilerMissing
from mlx_kernels.emulator.toolchain import compiler
from mlx_kernels.kernel import Kernel


@pytest.fixture(autouse=True)
def _needs_compiler() -> None:
    try:
        compiler()
    except CompilerMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def metal_kernel(tmp_path: Path) -> Callable[..., Kernel]:
    """Makes a Kernel of a body (and a header) written as text; inputs and outputs by name."""

    def make(
        body: str,
        inputs: tuple[str, ...] = ("x",),
        outputs: tuple[str, ...] = ("y",),
        header: str = "",
        **options: bool,
    ) -> Kernel:
        source = tmp_path / "body.metal"
        source.write_text(body, encoding="utf-8")
        headers: tuple[Path, ...] = ()
        if header:
            headers = (tmp_path / "header.metal",)
            headers[0].write_text(header, encoding="utf-8")
        return Kernel("under_test", inputs, outputs, source, headers, **options)

    return make
