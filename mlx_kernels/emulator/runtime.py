"""Runs a compiled kernel on the CPU, with every load and store checked and counted."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mlx_kernels.emulator.arrays import HostArray, as_output, dtype_name, filled, host_array
from mlx_kernels.emulator.compile import CompiledKernel, compiled, runtime
from mlx_kernels.emulator.fault_report import FAULT_NONE, FaultRecord, raise_fault
from mlx_kernels.emulator.faults import (
    LaunchRefused,
    OrderDependence,
    TooManyBuffers,
    TooManyThreads,
)
from mlx_kernels.emulator.signature import kernel_text, shape_infos
from mlx_kernels.emulator.traffic import Traffic
from mlx_kernels.kernel import Kernel

# Metal's limits: Metal Feature Set Tables, families Apple7 and later.
MAX_THREADS = 1024
MAX_BUFFERS = 31

Order = Literal["forward", "reverse", "shuffled"]
ORDERS: tuple[Order, ...] = ("forward", "reverse", "shuffled")

# Rounding of one operation (unit in the last place of 1), with room for sums in another order.
_TOLERANCE = {"float16": 2**-9, "bfloat16": 2**-6, "float32": 2**-20}


@dataclass(frozen=True)
class Buffer:
    """A buffer argument of a launch.

    name: for reports. data: its bytes, uint8, written in place if it is an output.
    writable: the kernel may store into it. initialised: its bytes may be read before they are
    written.
    """

    name: str
    data: np.ndarray
    writable: bool = False
    initialised: bool = True


@dataclass(frozen=True)
class LaunchReport:
    """What one launch did.

    traffic: by name of the buffer. threadgroups: how many ran, of how many. barriers: threadgroup
    barriers that were passed. threadgroup_bytes: threadgroup memory that a threadgroup declares.
    threadgroup_loaded, threadgroup_stored: bytes moved in it.
    """

    traffic: Mapping[str, Traffic]
    threadgroups_run: int
    threadgroups: int
    barriers: int
    threadgroup_bytes: int
    threadgroup_loaded: int
    threadgroup_stored: int


@dataclass(frozen=True)
class Emulation:
    """The outputs of a kernel, as MLX would return them, and what the run moved.

    outputs: arrays in the order of the kernel's output names. report: of the first order that ran.
    """

    outputs: list[Any]
    report: LaunchReport

    @property
    def traffic(self) -> Mapping[str, Traffic]:
        """Loads and stores by the names of inputs and outputs."""
        return self.report.traffic


def emulate(
    kernel: Kernel,
    *,
    inputs: Sequence[Any],
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[Any],
    grid: Sequence[int],
    threadgroup: Sequence[int],
    template: Sequence[tuple[str, Any]] = (),
    init_value: float | None = None,
    orders: Sequence[Order] = ORDERS,
    sample: int | None = None,
) -> Emulation:
    """Runs a kernel's text on the CPU: the same call as the callable of `mx.fast.metal_kernel`.

    inputs: MLX or NumPy arrays, or numbers. output_shapes, output_dtypes: of the outputs; one whose
    dtype is MLX's is an MLX array, one whose dtype is NumPy's a NumPy array. grid: in threads.
    threadgroup: in threads. template: names with an int, a bool or a dtype. init_value: what
    outputs hold before; None leaves them unwritten, and reading them is a fault.
    orders: the orders in which lanes, simdgroups and threadgroups run, one run each; results that
    differ beyond rounding are refused. sample: run only this many threadgroups, spread evenly over
    the grid; the others' outputs stay zero.

    Raises LaunchRefused for a call that MLX or Metal refuses, CompileFailed for text that does not
    compile, and a KernelFault for what the kernel does wrong.
    """
    if len(inputs) != len(kernel.input_names):
        raise LaunchRefused(_sizes("inputs", len(kernel.input_names), len(inputs)))
    for what, given in (("output_shapes", output_shapes), ("output_dtypes", output_dtypes)):
        if len(given) != len(kernel.output_names):
            raise LaunchRefused(_sizes(what, len(kernel.output_names), len(given)))
    arrays = [host_array(x, row_contiguous=kernel.ensure_row_contiguous) for x in inputs]
    text = kernel_text(kernel, arrays, template, output_dtypes)
    binary = compiled(text)

    before = _input_buffers(kernel, arrays)
    shapes = [tuple(int(n) for n in shape) for shape in output_shapes]
    first: tuple[list[np.ndarray], LaunchReport] | None = None
    for seed, order in enumerate(orders, start=1):
        outputs = [filled(s, d, init_value) for s, d in zip(shapes, output_dtypes, strict=True)]
        buffers = before + [
            Buffer(name, data, writable=True, initialised=init_value is not None)
            for name, data in zip(kernel.output_names, outputs, strict=True)
        ]
        report = launch(binary, buffers, grid, threadgroup, order=order, seed=seed, sample=sample)
        if first is None:
            first = outputs, report
            continue
        for name, a, b, dtype in zip(
            kernel.output_names, first[0], outputs, output_dtypes, strict=True
        ):
            check_equal(kernel.name, name, a, b, dtype_name(dtype), orders[0], order)
    if first is None:
        raise LaunchRefused("no order to run in was given")
    return Emulation(
        [as_output(d, s, t) for d, s, t in zip(first[0], shapes, output_dtypes, strict=True)],
        first[1],
    )


def _sizes(what: str, expected: int, given: int) -> str:
    return f"[metal_kernel] Expected `{what}` to have size {expected} but got size {given}."


def _input_buffers(kernel: Kernel, arrays: Sequence[HostArray]) -> list[Buffer]:
    source = kernel.source_text()
    buffers: list[Buffer] = []
    for name, array in zip(kernel.input_names, arrays, strict=True):
        buffers.append(Buffer(name, array.data))
        values = {
            "_shape": np.array(array.shape, dtype=np.int32),
            "_strides": np.array(array.strides, dtype=np.int64),
            "_ndim": np.array([len(array.shape)], dtype=np.int32),
        }
        for suffix in shape_infos(source, name) if array.shape else ():
            buffers.append(Buffer(name + suffix, values[suffix].view(np.uint8)))
    return buffers


class _BufferArgument(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("writable", ctypes.c_int32),
        ("initialised", ctypes.c_int32),
        ("loaded", ctypes.c_uint64),
        ("stored", ctypes.c_uint64),
        ("simdgroup_loads", ctypes.c_uint64),
        ("scattered_loads", ctypes.c_uint64),
    ]


class _Run(ctypes.Structure):
    _fields_ = [
        ("launch", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(_BufferArgument)),
        ("buffer_count", ctypes.c_int32),
        ("order", ctypes.c_int32),
        ("seed", ctypes.c_uint32),
        ("grid", ctypes.c_uint32 * 3),
        ("threadgroup", ctypes.c_uint32 * 3),
        ("sample", ctypes.c_void_p),
        ("sample_count", ctypes.c_uint64),
        ("static_start", ctypes.c_uint64),
        ("static_end", ctypes.c_uint64),
        ("threadgroups_run", ctypes.c_uint64),
        ("barriers", ctypes.c_uint64),
        ("threadgroup_bytes", ctypes.c_uint64),
        ("threadgroup_loaded", ctypes.c_uint64),
        ("threadgroup_stored", ctypes.c_uint64),
        ("fault", FaultRecord),
    ]


# The runtime has one set of fibers and one memory.
_running = threading.Lock()


def launch(
    kernel: CompiledKernel,
    buffers: Sequence[Buffer | None],
    grid: Sequence[int],
    threadgroup: Sequence[int],
    *,
    order: Order = "forward",
    seed: int = 1,
    sample: int | None = None,
) -> LaunchReport:
    """Runs a compiled kernel once. Outputs are written into their buffers' data.

    buffers: by index; None where the kernel has no buffer. grid, threadgroup: in threads.
    """
    grid3, group3 = _three("grid", grid), _three("threadgroup", threadgroup)
    # As MLX clips it before it dispatches.
    group3 = tuple(min(t, n) for t, n in zip(group3, grid3, strict=True))
    threads = group3[0] * group3[1] * group3[2]
    if threads > MAX_THREADS:
        raise TooManyThreads(
            f"{threads} threads in a threadgroup {group3}; Metal allows {MAX_THREADS}."
        )
    if len(buffers) > MAX_BUFFERS:
        raise TooManyBuffers(
            f"{len(buffers)} buffer arguments (arrays, and the shapes, strides and ndims that the "
            f"text names); Metal allows {MAX_BUFFERS}."
        )
    groups = 1
    for n, t in zip(grid3, group3, strict=True):
        groups *= -(-n // t)
    arguments = (_BufferArgument * max(1, len(buffers)))()
    for argument, buffer in zip(arguments, buffers, strict=False):
        if buffer is None:
            continue
        assert buffer.data.flags["C_CONTIGUOUS"]
        argument.data = buffer.data.ctypes.data or 1
        argument.bytes = buffer.data.nbytes
        argument.writable = buffer.writable
        argument.initialised = buffer.initialised
    run = _Run(launch=kernel.launch, buffers=arguments, buffer_count=len(buffers))
    run.order = ORDERS.index(order)
    run.seed = seed
    run.grid[:] = grid3
    run.threadgroup[:] = group3
    if sample is not None and sample < groups:
        chosen = np.unique(np.linspace(0, groups - 1, max(1, sample)).astype(np.uint64))
        run.sample = chosen.ctypes.data
        run.sample_count = len(chosen)
    names = [buffer.name if buffer else None for buffer in buffers]
    with _running:
        if runtime().emulator_run(ctypes.byref(run)) < 0:
            raise MemoryError("the emulator could not reserve its address range")
        if run.fault.kind != FAULT_NONE:
            raise_fault(run.fault, names, kernel.library, int(run.static_start), runtime())
    return LaunchReport(
        {
            buffer.name: Traffic(
                int(argument.bytes),
                int(argument.loaded),
                int(argument.stored),
                int(argument.simdgroup_loads),
                int(argument.scattered_loads),
            )
            for argument, buffer in zip(arguments, buffers, strict=False)
            if buffer
        },
        int(run.threadgroups_run),
        groups,
        int(run.barriers),
        int(run.threadgroup_bytes),
        int(run.threadgroup_loaded),
        int(run.threadgroup_stored),
    )


def _three(what: str, sizes: Sequence[int]) -> tuple[int, ...]:
    three = tuple(int(n) for n in sizes)
    if len(three) != 3 or any(n < 1 for n in three):
        raise LaunchRefused(f"{what} is three positive numbers of threads, not {tuple(sizes)}")
    return three


def check_equal(
    kernel: str, output: str, a: np.ndarray, b: np.ndarray, dtype: str, order: str, other: str
) -> None:
    """Raises OrderDependence if two runs' bytes of an output differ beyond the dtype's rounding."""
    if np.array_equal(a, b):
        return
    if dtype == "bfloat16":
        x, y = ((v.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for v in (a, b))
    else:
        x, y = a.view(dtype), b.view(dtype)
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    tolerance = _TOLERANCE.get(dtype, 0.0) * (1 + np.maximum(np.abs(x64), np.abs(y64)))
    differ = ~((np.abs(x64 - y64) <= tolerance) | (x64 == y64) | (np.isnan(x64) & np.isnan(y64)))
    if differ.any():
        first = int(np.flatnonzero(differ)[0])
        raise OrderDependence(
            f"{kernel}: {int(differ.sum())} elements of output {output} depend on the order in "
            f"which lanes and simdgroups run; element {first} is {x[first]} in {order} order and "
            f"{y[first]} in {other} order."
        )
