"""One description of a Metal kernel: MLX builds it for the GPU, the emulator for the CPU."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlx_kernels.emulator.runtime import Emulation


class MetalUnavailable(RuntimeError):
    """Raised where a kernel is asked to run on a GPU and there is no Metal."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as `mx.fast.metal_kernel` takes it, with its text in `.metal` files.

    name: the kernel's name, an identifier.
    input_names, output_names: names of the arrays in the text, in the order of the call.
    source: the file with the body of the function.
    headers: files with what stands before the function, in this order.
    ensure_row_contiguous: copies an input that is not row-contiguous before the launch; with False
        the text takes `<name>_strides` instead.
    atomic_outputs: outputs are `device atomic<T>*`.
    """

    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: Path
    headers: tuple[Path, ...] = field(default=())
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False

    def source_text(self) -> str:
        """The body, marked so that a compiler's message points at its line in the file."""
        return marked_text(self.source)

    def header_text(self) -> str:
        """The headers one after the other, marked like the body."""
        return "".join(marked_text(header) for header in self.headers)

    def metal(self) -> Any:
        """The callable that `mx.fast.metal_kernel` builds, made once a process.

        Raises MetalUnavailable where MLX has no Metal device.
        """
        return _metal(self)

    def emulate(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]] = (),
        init_value: float | None = None,
        **options: Any,
    ) -> Emulation:
        """Runs the text on the CPU: see `mlx_kernels.emulator.emulate`, which takes the options."""
        from mlx_kernels.emulator import emulate

        return emulate(
            self,
            inputs=inputs,
            output_shapes=output_shapes,
            output_dtypes=output_dtypes,
            grid=grid,
            threadgroup=threadgroup,
            template=template,
            init_value=init_value,
            **options,
        )


def marked_text(path: Path) -> str:
    """The text of a file after a `#line` directive that names it."""
    text = path.read_text(encoding="utf-8")
    end = "" if text.endswith("\n") else "\n"
    return f'\n#line 1 "{path.as_posix()}"\n{text}{end}'


@functools.cache
def _metal(kernel: Kernel) -> Any:
    import mlx.core as mx

    if not mx.metal.is_available():
        raise MetalUnavailable(
            f"kernel {kernel.name} needs a Metal GPU, and this machine has none. "
            "Use the plain path of mlx_kernels, or Kernel.emulate to run its text on the CPU."
        )
    return mx.fast.metal_kernel(
        name=kernel.name,
        input_names=list(kernel.input_names),
        output_names=list(kernel.output_names),
        source=kernel.source_text(),
        header=kernel.header_text(),
        ensure_row_contiguous=kernel.ensure_row_contiguous,
        atomic_outputs=kernel.atomic_outputs,
    )
