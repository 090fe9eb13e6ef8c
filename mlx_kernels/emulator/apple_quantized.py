"""Apple's kernels for affine-quantized arrays, and mlx-lm's attention over a cache of them.

Launched as mlx/backend/metal/quantized.cpp does (MLX 0.32), from the headers in the MLX wheel.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from mlx_kernels.emulator.apple import HEADERS, Output, run_header_kernel
from mlx_kernels.emulator.arrays import metal_type
from mlx_kernels.emulator.runtime import LaunchReport

QUANTIZED_HEADERS = (
    f"{HEADERS}/steel/gemm/gemm.h",
    f"{HEADERS}/quantized_utils.h",
    f"{HEADERS}/quantized.h",
)

_SIMD = 32

# A quantized array as mx.quantize returns it: packed uint32, scales, biases.
Packed = tuple[mx.array, mx.array, mx.array]


def affine_quantize(
    w: mx.array, *, group_size: int, bits: int, **options: Any
) -> tuple[tuple[mx.array, mx.array, mx.array], LaunchReport]:
    """`affine_quantize` of w [..., n], as `mx.quantize`: packed uint32 [..., n * bits / 32], scales
    and biases [..., n / group_size] of w's dtype."""
    *rows, n = w.shape
    packed, groups = (*rows, n * bits // 32), (*rows, n // group_size)
    # MLX's host gives each thread the values of a simdgroup's group it reduces, or of one byte.
    per_thread = max(group_size // _SIMD, 1)
    threads = w.size // per_thread
    out, report = run_header_kernel(
        "affine_quantize",
        QUANTIZED_HEADERS,
        [metal_type(w.dtype), str(group_size), str(bits)],
        {
            0: ("w", w),
            1: ("out", Output(packed, mx.uint32)),
            2: ("scales", Output(groups, w.dtype)),
            3: ("biases", Output(groups, w.dtype)),
        },
        grid=(threads, 1, 1),
        threadgroup=(min(threads, 1024), 1, 1),
        **options,
    )
    return (out["out"], out["scales"], out["biases"]), report


def affine_dequantize(
    w: mx.array, scales: mx.array, biases: mx.array, *, group_size: int, bits: int, **options: Any
) -> tuple[mx.array, LaunchReport]:
    """`affine_dequantize`, as `mx.dequantize`: w uint32 [..., n * bits / 32] to [..., n] of the
    scales' dtype. bits: 1, 2, 4 or 8."""
    *rows, words = w.shape
    n = words * 32 // bits
    threads = w.size * 32 // bits // (8 // bits)
    out, report = run_header_kernel(
        "affine_dequantize",
        QUANTIZED_HEADERS,
        [metal_type(scales.dtype), str(group_size), str(bits)],
        {
            0: ("w", w),
            1: ("scales", scales),
            2: ("biases", biases),
            3: ("out", Output((*rows, n), scales.dtype)),
        },
        grid=(threads, 1, 1),
        threadgroup=(min(threads, 1024), 1, 1),
        **options,
    )
    return out["out"], report


def quantized_attention(
    q: mx.array,
    keys: Packed,
    values: Packed,
    scale: float,
    *,
    group_size: int,
    bits: int,
    **options: Any,
) -> tuple[mx.array, list[LaunchReport]]:
    """mlx-lm's attention over a quantized cache (quantized_scaled_dot_product_attention in
    mlx_lm/models/base.py), without a mask: quantized matmul, softmax, quantized matmul.

    q [B, H, L, D] with L up to 8 and D 64 or 128; keys and values of [B, H_kv, S, D], packed along
    D, S a multiple of 64: for others affine_qmv_quad loads past the end of the cache, which the
    emulator refuses. Returns [B, H, L, D] of q's dtype and the reports of the two matmuls, whose
    buffers are `w`, `scales`, `biases` (the cache), `x` and `y`; the softmax between them is MLX's.
    """
    batch, heads, rows, d = q.shape
    kv_heads, n = keys[0].shape[1:3]
    queries = (q * scale).reshape(batch, kv_heads, heads // kv_heads, rows, d)
    # As dispatch_qmv: an inner dimension of 64 or 128 goes to qmv_quad, for rows below the limit of
    # every chip.
    scores, first = _batched_matmul(
        "affine_qmv_quad",
        [str(d), "true"],
        queries,
        keys,
        n,
        group_size=group_size,
        bits=bits,
        grid=(rows * _SIMD, -(-n // 64), 1),
        threadgroup=(_SIMD, 1, 1),
        options=options,
    )
    weights = mx.softmax(scores, axis=-1, precise=True)
    if rows >= 4:
        # QuantizedMatmul::eval_gpu: a matrix product from 4 rows on, in tiles of 32.
        out, second = _batched_matmul(
            "affine_qmm_n",
            ["true"],
            weights,
            values,
            d,
            group_size=group_size,
            bits=bits,
            grid=(-(-d // 32) * _SIMD, -(-rows // 32) * 2, 2),
            threadgroup=(_SIMD, 2, 2),
            options=options,
            rows_argument=True,
        )
    elif n < 1024:
        out, second = _batched_matmul(
            "affine_qvm",
            ["true"],
            weights,
            values,
            d,
            group_size=group_size,
            bits=bits,
            grid=(rows * _SIMD, -(-d // 64) * 2, 1),
            threadgroup=(_SIMD, 2, 1),
            options=options,
        )
    else:
        out, second = _split_matmul(
            weights, values, d, group_size=group_size, bits=bits, options=options
        )
    return out.reshape(batch, heads, rows, d), [first, second]


def _batched_matmul(
    function: str,
    template_arguments: list[str],
    x: mx.array,
    packed: Packed,
    columns: int,
    *,
    group_size: int,
    bits: int,
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    options: dict[str, Any],
    rows_argument: bool = False,
) -> tuple[mx.array, LaunchReport]:
    """x [B, H_kv, G, L, K] by a packed [B, H_kv, S, .] that each group of G heads shares, to
    [B, H_kv, G, L, columns]. grid: of one of the B * H_kv * G products."""
    rows, k = x.shape[-2:]
    batches = x.size // (rows * k)
    sizes = [("in_vec_size", k), ("out_vec_size", columns)]
    sizes += [("rows", rows)] if rows_argument else []
    first = 5 + len(sizes)
    shape = (*x.shape[:-1], columns)
    out, report = run_header_kernel(
        function,
        QUANTIZED_HEADERS,
        [metal_type(x.dtype), str(group_size), str(bits), *template_arguments],
        {
            **_matrices(x, packed),
            4: ("y", Output(shape, x.dtype)),
            **{5 + i: (n, np.array(v, dtype=np.int32)) for i, (n, v) in enumerate(sizes)},
            **_shapes(first, x.shape, _row_strides(x.shape), packed),
        },
        grid=(grid[0], grid[1], grid[2] * batches),
        threadgroup=threadgroup,
        **options,
    )
    return out["y"], report


def _split_matmul(
    x: mx.array,
    packed: Packed,
    columns: int,
    *,
    group_size: int,
    bits: int,
    options: dict[str, Any],
) -> tuple[mx.array, LaunchReport]:
    """As `_batched_matmul`, with the inner dimension split: affine_qvm_split_k, whose partial
    results MLX sums in another launch (here MLX itself)."""
    rows, k = x.shape[-2:]
    split = 32 if k > 8192 else 8
    part = -(-k // split)
    batches = x.size // (rows * k)
    *outer, _, _ = x.shape
    shape = (*outer, split, rows, columns)
    x_strides = [*_row_strides(x.shape)[:-2], part, part, 1]
    out, report = run_header_kernel(
        "affine_qvm_split_k",
        QUANTIZED_HEADERS,
        [metal_type(x.dtype), str(group_size), str(bits), str(split)],
        {
            **_matrices(x, packed),
            4: ("y", Output(shape, x.dtype)),
            5: ("in_vec_size", np.array(part, dtype=np.int32)),
            6: ("out_vec_size", np.array(columns, dtype=np.int32)),
            **_shapes(7, (*outer, split, rows, part), x_strides, packed, split_by=part),
            15: ("final_block_size", np.array(k - (split - 1) * part, dtype=np.int32)),
        },
        grid=(rows * _SIMD, -(-columns // 64) * 2, batches * split),
        threadgroup=(_SIMD, 2, 1),
        **options,
    )
    return out["y"].sum(axis=-3), report


def _matrices(x: mx.array, packed: Packed) -> dict[int, tuple[str, Any]]:
    names = ("w", "scales", "biases", "x")
    return {i: (n, v) for i, (n, v) in enumerate(zip(names, (*packed, x), strict=True))}


def _shapes(
    first: int,
    x_shape: tuple[int, ...],
    x_strides: list[int],
    packed: Packed,
    split_by: int | None = None,
) -> dict[int, tuple[str, Any]]:
    """The batch shapes and strides that MLX passes from buffer `first` on: the packed arrays
    [B, H_kv, S, .] broadcast over the group's heads, and over splits of `split_by` rows."""
    batch, kv_heads, n, words = packed[0].shape
    group = x_shape[2]

    def strides(array: mx.array) -> np.ndarray:
        last = array.shape[-1]
        inner = [] if split_by is None else [split_by * last]
        return np.array([kv_heads * n * last, n * last, 0, *inner, last, 1], dtype=np.int64)

    w_shape = [batch, kv_heads, group]
    w_shape += [n, words] if split_by is None else [x_shape[-3], n // x_shape[-3], words]
    dimensions = np.array(len(x_shape) - 2, dtype=np.int32)
    values: list[tuple[str, Any]] = [
        ("x_batch_ndims", dimensions),
        ("x_shape", np.array(x_shape, dtype=np.int32)),
        ("x_strides", np.array(x_strides, dtype=np.int64)),
        ("w_batch_ndims", dimensions),
        ("w_shape", np.array(w_shape, dtype=np.int32)),
        ("w_strides", strides(packed[0])),
        ("s_strides", strides(packed[1])),
        ("b_strides", strides(packed[2])),
    ]
    return {first + i: value for i, value in enumerate(values)}


def _row_strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
