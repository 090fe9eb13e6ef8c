"""The whole text of a kernel: MLX's generated function around a body.

MLX builds it in mlx/backend/common/metal_kernel.cpp (write_signature, MLX 0.32); this is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from mlx_kernels.emulator.arrays import HostArray, metal_type
from mlx_kernels.emulator.faults import LaunchRefused
from mlx_kernels.kernel import Kernel

# An input with fewer elements is passed in the constant address space.
MAX_CONSTANT_ARRAY_SIZE = 8

# What stands before every kernel that MLX compiles: metal::utils() is the text of this header.
PRELUDE = '#include "mlx/backend/metal/kernels/utils.h"\n'

ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}


@dataclass(frozen=True)
class KernelText:
    """A kernel as text that can be compiled: the function's name, its template arguments as they
    stand between the angle brackets ("" if it is no template), and all of the text."""

    function: str
    template_arguments: str
    text: str


def template_argument(value: Any) -> tuple[str, str]:
    """The kind of a template parameter and the text of its argument: an int, a bool or a dtype."""
    if isinstance(value, bool):
        return "bool", "true" if value else "false"
    if isinstance(value, int):
        return "int", str(value)
    if isinstance(value, mx.Dtype | type) or hasattr(value, "itemsize"):
        return "typename", metal_type(value)
    raise LaunchRefused(f"a template argument is an int, a bool or a dtype, not {value!r}")


def kernel_text(
    kernel: Kernel,
    inputs: Sequence[HostArray],
    template: Sequence[tuple[str, Any]],
    output_dtypes: Sequence[Any],
) -> KernelText:
    """The text that MLX would compile for this call."""
    source = kernel.source_text()
    function = f"custom_kernel_{kernel.name}"
    parameters: list[str] = []

    def add(declaration: str) -> None:
        parameters.append(f"{declaration} [[buffer({len(parameters)})]]")

    for name, array in zip(kernel.input_names, inputs, strict=True):
        space = "constant" if array.size < MAX_CONSTANT_ARRAY_SIZE else "device"
        reference = "*" if array.shape else "&"
        add(f"const {space} {metal_type(array.dtype)}{reference} {name}")
        for suffix in shape_infos(source, name) if array.shape else ():
            add(f"const constant {_SHAPE_TYPES[suffix]} {name}{suffix}")
    for name, dtype in zip(kernel.output_names, output_dtypes, strict=True):
        kind = metal_type(dtype)
        add(f"device {f'atomic<{kind}>' if kernel.atomic_outputs else kind}* {name}")
    # As MLX does it: an attribute is passed if its name occurs anywhere in the body.
    parameters += [f"{kind} {a} [[{a}]]" for a, kind in ATTRIBUTES.items() if a in source]

    arguments = [(name, *template_argument(value)) for name, value in template]
    head = ", ".join(f"{kind} {name}" for name, kind, _ in arguments)
    text = (
        PRELUDE
        + kernel.header_text()
        + (f"template <{head}>\n" if head else "")
        + f"[[kernel]] void {function}(\n  "
        + ",\n  ".join(parameters)
        + ") {\n"
        + source
        + "\n}\n"
    )
    return KernelText(function, ", ".join(text for _, _, text in arguments), text)


_SHAPE_TYPES = {"_shape": "int*", "_strides": "int64_t*", "_ndim": "int&"}


def shape_infos(source: str, name: str) -> list[str]:
    """Which of an input's `_shape`, `_strides` and `_ndim` the body names."""
    return [suffix for suffix in _SHAPE_TYPES if name + suffix in source]
