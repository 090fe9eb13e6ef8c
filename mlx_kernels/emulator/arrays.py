"""Arrays of MLX and NumPy as the bytes that a Metal buffer holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_kernels.emulator.faults import LaunchRefused

# Names of dtypes in a kernel's signature: MLX's get_type_string (mlx/backend/common/compiled.cpp).
METAL_TYPES = {
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
}
_ITEM_BYTES = {name: np.dtype(name).itemsize for name in METAL_TYPES if name != "bfloat16"}
_ITEM_BYTES["bfloat16"] = 2


@dataclass(frozen=True)
class HostArray:
    """An array as a kernel sees it.

    data: the bytes of the buffer, uint8, 1-d. dtype: MLX's name. strides: in elements.
    """

    data: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


def dtype_name(dtype: Any) -> str:
    """The name that MLX and NumPy share for a dtype of either, or for its name.

    Raises LaunchRefused for one that no kernel takes.
    """
    if isinstance(dtype, mx.Dtype):
        name = str(dtype).removeprefix("mlx.core.").removesuffix("_")
    else:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in METAL_TYPES:
        raise LaunchRefused(f"Metal kernels take no {name} arrays.")
    return name


def metal_type(dtype: Any) -> str:
    """The name of a dtype in a kernel's signature."""
    return METAL_TYPES[dtype_name(dtype)]


def item_bytes(dtype: Any) -> int:
    """Bytes of one element."""
    return _ITEM_BYTES[dtype_name(dtype)]


def host_array(value: Any, *, row_contiguous: bool) -> HostArray:
    """An input of a kernel: an MLX or NumPy array, or a number (int32, float32 or bool, 0-d).

    row_contiguous: copies an array that is not. Otherwise the buffer spans exactly what the array's
    strides reach, and what lies between is filled with 0xff.
    """
    if isinstance(value, bool):
        value = np.array(value)
    elif isinstance(value, int):
        value = np.array(value, dtype=np.int32)
    elif isinstance(value, float):
        value = np.array(value, dtype=np.float32)
    if isinstance(value, mx.array):
        dtype = dtype_name(value.dtype)
        mx.eval(value)
        raw = value.view(mx.uint16) if dtype == "bfloat16" else value
        array = np.array(raw, copy=False)
    else:
        array = np.asarray(value)
        dtype = dtype_name(array.dtype)
    if row_contiguous or array.flags["C_CONTIGUOUS"]:
        array = np.ascontiguousarray(array).reshape(array.shape)
        strides = _row_strides(array.shape)
        return HostArray(array.reshape(-1).view(np.uint8), dtype, array.shape, strides)
    item = array.itemsize
    strides = tuple(s // item for s in array.strides)
    if any(s < 0 for s in strides):
        raise LaunchRefused("an input with negative strides must be copied first")
    span = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    buffer = np.full(span * item, 0xFF, dtype=np.uint8)
    inside = np.lib.stride_tricks.as_strided(
        buffer.view(array.dtype), shape=array.shape, strides=array.strides
    )
    inside[...] = array
    return HostArray(buffer, dtype, array.shape, strides)


def _row_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def filled(shape: tuple[int, ...], dtype: Any, value: float | None) -> np.ndarray:
    """The bytes of an output before the run: uint8, 1-d."""
    count = int(np.prod(shape, dtype=np.int64))
    if value is None:
        return np.zeros(count * item_bytes(dtype), dtype=np.uint8)
    name = dtype_name(dtype)
    if name == "bfloat16":
        one = np.array(mx.array(value, dtype=mx.bfloat16).view(mx.uint16))
        return np.full(count, one, dtype=np.uint16).view(np.uint8)
    return np.full(count, value).astype(name).view(np.uint8)


def as_output(data: np.ndarray, shape: tuple[int, ...], dtype: Any) -> Any:
    """The bytes of an output as an MLX array if its dtype was given as MLX's, else NumPy's."""
    if not isinstance(dtype, mx.Dtype):
        return data.view(np.dtype(dtype)).reshape(shape)
    name = dtype_name(dtype)
    if name == "bfloat16":
        return mx.array(data.view(np.uint16).reshape(shape)).view(mx.bfloat16)
    return mx.array(data.view(np.dtype(name)).reshape(shape))
