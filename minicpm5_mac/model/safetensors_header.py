"""What a safetensors file says it holds, checked against its size, without reading its weights.

The format: https://github.com/huggingface/safetensors#format. Eight bytes give the length of a
JSON object of tensors, each with its dtype, shape, and its begin and end after that object.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from minicpm5_mac.model.failure import ModelFailure

_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 100_000_000  # the safetensors library's own limit

_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2,
          "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8,
          "F64": 8}  # fmt: skip


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as the header describes it. dtype: the format's own name, such as "BF16"."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Tensors by name. Raises ModelFailure: incomplete (cut off), corrupt (anything else)."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if size < _LENGTH_BYTES:
                raise _cut_off(path, f"it has {size} bytes")
            if not 2 <= length <= _MOST_HEADER_BYTES:
                raise _corrupt(path, "it does not begin as a safetensors file does")
            if size < _LENGTH_BYTES + length:
                raise _cut_off(path, f"it ends within its header, after {size:,} bytes")
            header = json.loads(file.read(length))
    except OSError as error:
        raise _corrupt(path, f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _corrupt(path, "its header is not JSON") from error
    try:
        tensors = _tensors(path, header)
        end = max((entry["data_offsets"][1] for entry in _entries(header).values()), default=0)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise _corrupt(path, "its header is not that of a safetensors file") from error
    expected = _LENGTH_BYTES + length + end
    if size < expected:
        raise _cut_off(path, f"it has {size:,} of {expected:,} bytes")
    if size > expected:
        raise _corrupt(path, f"it has {size:,} bytes, and its header accounts for {expected:,}")
    return tensors


def _entries(header: dict[str, dict]) -> dict[str, dict]:
    return {name: entry for name, entry in header.items() if name != "__metadata__"}


def _tensors(path: Path, header: dict[str, dict]) -> dict[str, StoredTensor]:
    tensors = {}
    for name, entry in _entries(header).items():
        begin, end = entry["data_offsets"]
        shape = tuple(int(size) for size in entry["shape"])
        if entry["dtype"] not in _BYTES:
            raise _corrupt(path, f"{name} is of an unknown type {entry['dtype']}")
        if begin < 0 or end - begin != math.prod(shape) * _BYTES[entry["dtype"]]:
            raise _corrupt(path, f"the place of {name} does not match its shape")
        tensors[name] = StoredTensor(entry["dtype"], shape, end - begin)
    return tensors


def _cut_off(path: Path, why: str) -> ModelFailure:
    return ModelFailure("incomplete", f"{path.name} is cut off: {why}.")


def _corrupt(path: Path, why: str) -> ModelFailure:
    return ModelFailure("corrupt", f"{path.name} is damaged: {why}.")
