"""Apple's own kernels, from the headers in the installed MLX wheel, run by the emulator.

They are launched as MLX's host code launches them (scaled_dot_product_attention.cpp in
mlx/backend/metal, MLX 0.32), so that their results can be held against MLX's and their reads
counted. The quantized ones are in apple_quantized.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_kernels.emulator.arrays import as_output, host_array, item_bytes, metal_type
from mlx_kernels.emulator.compile import compiled
from mlx_kernels.emulator.metal_text import FunctionConstants
from mlx_kernels.emulator.runtime import Buffer, LaunchReport, Order, launch
from mlx_kernels.emulator.signature import PRELUDE, KernelText

HEADERS = "mlx/backend/metal/kernels"
SDPA_HEADERS = (f"{HEADERS}/sdpa_vector.h",)

_SIMD = 32


@dataclass(frozen=True)
class Output:
    """An output of a header's kernel: its shape and MLX dtype."""

    shape: tuple[int, ...]
    dtype: mx.Dtype


def run_header_kernel(
    function: str,
    headers: Sequence[str],
    template_arguments: Sequence[str],
    arguments: Mapping[int, tuple[str, Any]],
    *,
    grid: Sequence[int],
    threadgroup: Sequence[int],
    function_constants: FunctionConstants | None = None,
    order: Order = "forward",
    seed: int = 1,
    sample: int | None = None,
) -> tuple[dict[str, Any], LaunchReport]:
    """Runs a kernel function of headers on MLX's include path.

    template_arguments: as they stand in the text. arguments: by buffer index, a name with an array
    (strides are the caller's: the buffer holds the array row-contiguous), a NumPy scalar of the
    parameter's type, or an Output. grid, threadgroup: in threads. function_constants: by index.
    Returns the outputs by name, and what the launch did.
    """
    text = PRELUDE + "".join(f'#include "{header}"\n' for header in headers)
    binary = compiled(
        KernelText(function, ", ".join(template_arguments), text), function_constants or {}
    )
    buffers: list[Buffer | None] = [None] * (1 + max(arguments))
    outputs: dict[str, tuple[np.ndarray, Output]] = {}
    for index, (name, value) in arguments.items():
        if isinstance(value, Output):
            count = int(np.prod(value.shape, dtype=np.int64))
            data = np.zeros(count * item_bytes(value.dtype), dtype=np.uint8)
            outputs[name] = data, value
            buffers[index] = Buffer(name, data, writable=True, initialised=False)
        else:
            buffers[index] = Buffer(name, host_array(value, row_contiguous=True).data)
    report = launch(binary, buffers, grid, threadgroup, order=order, seed=seed, sample=sample)
    return {n: as_output(d, o.shape, o.dtype) for n, (d, o) in outputs.items()}, report


def _attention_constants(blocks: int | None, *, causal: bool) -> dict[int, bool | int]:
    """The function constants of sdpa_vector.h, for a row-contiguous query without a mask array."""
    constants: dict[int, bool | int] = dict.fromkeys(range(20, 26), False)
    constants[22] = causal
    if blocks is not None:
        constants[26] = blocks
    return constants


def _kv_strides(k: mx.array, v: mx.array, first: int) -> dict[int, tuple[str, Any]]:
    """The head and sequence strides of row-contiguous K and V [B, heads, N, D], in elements."""
    n, d = k.shape[2:]
    names = ("k_head_stride", "k_seq_stride", "v_head_stride", "v_seq_stride")
    values = (n * d, d, n * v.shape[-1], v.shape[-1])
    return {
        first + i: (name, np.array(value, dtype=np.uint64))
        for i, (name, value) in enumerate(zip(names, values, strict=True))
    }


def sdpa_vector(
    q: mx.array, k: mx.array, v: mx.array, scale: float, *, causal: bool = False, **options: Any
) -> tuple[mx.array, list[LaunchReport]]:
    """`sdpa_vector`: one pass. q [B, H, L, D], k and v [B, H_kv, N, D], L up to 8, one dtype.

    Returns [B, H, L, D] of that dtype and the report of its one launch. options: order, seed and
    sample.
    """
    batch, heads, rows, d = q.shape
    out, report = run_header_kernel(
        "sdpa_vector",
        SDPA_HEADERS,
        [metal_type(q.dtype), str(d), str(v.shape[-1])],
        {
            0: ("queries", q),
            1: ("keys", k),
            2: ("values", v),
            3: ("out", Output((batch, heads, rows, v.shape[-1]), q.dtype)),
            4: ("gqa_factor", np.array(heads // k.shape[1], dtype=np.int32)),
            5: ("N", np.array(k.shape[2], dtype=np.int32)),
            **_kv_strides(k, v, 6),
            10: ("scale", np.array(scale, dtype=np.float32)),
        },
        grid=(batch * heads * 1024, rows, 1),
        threadgroup=(1024, 1, 1),
        function_constants=_attention_constants(None, causal=causal and rows > 1),
        **options,
    )
    return out["out"], [report]


def sdpa_vector_2pass(
    q: mx.array,
    k: mx.array,
    v: mx.array,
    scale: float,
    *,
    blocks: int,
    gqa: bool = False,
    causal: bool = False,
    **options: Any,
) -> tuple[mx.array, list[LaunchReport]]:
    """`sdpa_vector_2pass_1` (or `_1_gqa`, for one row and 8 query heads a KV head) and then `_2`.

    Shapes as `sdpa_vector`. blocks: splits of the sequence, a multiple of 32; MLX takes 32 to 1,024
    of them, by chip and length. Returns the output and the reports of both launches.
    """
    batch, heads, rows, d = q.shape
    kv_heads, n = k.shape[1:3]
    d_v = v.shape[-1]
    group = heads // kv_heads
    causal = causal and rows > 1
    partial, first = run_header_kernel(
        "sdpa_vector_2pass_1_gqa" if gqa else "sdpa_vector_2pass_1",
        SDPA_HEADERS,
        # As sdpa_vector.metal instantiates the gqa kernel: 8 heads a group, 2 times 4 of them.
        [metal_type(q.dtype), str(d), str(d_v), *(["8", "4"] if gqa else [])],
        {
            0: ("queries", q),
            1: ("keys", k),
            2: ("values", v),
            3: ("partials", Output((batch, heads, rows, blocks, d_v), q.dtype)),
            4: ("sums", Output((batch, heads, rows, blocks), mx.float32)),
            5: ("maxs", Output((batch, heads, rows, blocks), mx.float32)),
            7: ("N", np.array(n, dtype=np.int32)),
            **_kv_strides(k, v, 8),
            12: ("scale", np.array(scale, dtype=np.float32)),
        },
        grid=(kv_heads * _SIMD, batch * group, blocks * rows),
        threadgroup=(_SIMD, group, rows),
        function_constants=_attention_constants(blocks, causal=causal),
        **options,
    )
    out, second = run_header_kernel(
        "sdpa_vector_2pass_2",
        SDPA_HEADERS,
        [metal_type(q.dtype), str(d_v)],
        {
            0: ("partials", partial["partials"]),
            1: ("sums", partial["sums"]),
            2: ("maxs", partial["maxs"]),
            3: ("out", Output((batch, heads, rows, d_v), q.dtype)),
            4: ("blocks", np.array(blocks, dtype=np.int32)),
        },
        grid=(batch * heads * 1024, rows, 1),
        threadgroup=(1024, 1, 1),
        **options,
    )
    return out["out"], [first, second]
