"""A GGUF file's metadata and tensors, with every length checked against the file's size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader

from minicpm5_mac.model.failure import ModelFailure

MAGIC = b"GGUF"

# The tensor types that become MLX weights without loss.
READABLE_TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0")


class _EndOfFile(Exception):
    """A length in the file points past its end."""


class _BoundedReader(GGUFReader):
    # GGUFReader slices a memory map, and a slice past the end is silently short: a cut file would
    # give wrong values, and an absurd array length would loop without end.
    def _get(
        self, offset: int, dtype: Any, count: int = 1, override_order: Any = None
    ) -> np.ndarray:
        if int(offset) + int(count) * np.dtype(dtype).itemsize > len(self.data):
            raise _EndOfFile
        return super()._get(offset, dtype, count, override_order)


@dataclass(frozen=True)
class GGUFTensor:
    """One tensor. shape: rows first, as in MLX (GGUF lists the input axis first).

    data: float16 or float32 of that shape, or uint8 rows of quantized blocks or of bfloat16.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    data: np.ndarray


@dataclass(frozen=True)
class GGUFFile:
    """What a GGUF file holds. metadata: values as Python objects, by key."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, GGUFTensor]

    def get(self, key: str, default: Any = None) -> Any:
        """A metadata value, or the default where the file does not name it."""
        return self.metadata.get(key, default)

    def require(self, key: str) -> Any:
        """A metadata value. Raises ModelFailure (foreign) where the file does not name it."""
        if key not in self.metadata:
            raise ModelFailure(
                "foreign",
                f"{self.path.name} has no metadata {key}, which a llama model needs.",
                "Convert the model again, or take another file.",
            )
        return self.metadata[key]


def read_gguf(path: Path) -> GGUFFile:
    """Map the file into memory and read its header.

    Raises ModelFailure: not_found, foreign (no GGUF, or of another byte order), corrupt (cut off,
    or not readable as GGUF).
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise ModelFailure(
            "not_found", f"{path} cannot be read: {error.strerror}.", "Check the path."
        ) from error
    if magic != MAGIC:
        raise ModelFailure(
            "foreign", f"{path.name} is not a GGUF file.", "Import takes one file ending in .gguf."
        )
    try:
        reader = _BoundedReader(path)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except _EndOfFile as error:
        raise ModelFailure(
            "incomplete",
            f"{path.name} is cut off: its header names more data than the file holds.",
            "Download the file again.",
        ) from error
    # What the reader raises on a damaged header is whatever numpy or enum raise.
    except (ValueError, KeyError, IndexError, OverflowError, TypeError, MemoryError) as error:
        raise ModelFailure(
            "corrupt",
            f"{path.name} is damaged, or a newer kind of GGUF: {error}.",
            "Download the file again.",
        ) from error
    if reader.byte_order != "I":
        raise ModelFailure(
            "foreign",
            f"{path.name} was written for machines of the other byte order.",
            "Take the little-endian file of this model.",
        )
    tensors = {
        tensor.name: GGUFTensor(
            tensor.name,
            tensor.tensor_type.name,
            tuple(int(size) for size in reversed(tensor.shape.tolist())),
            tensor.data,
        )
        for tensor in reader.tensors
    }
    return GGUFFile(path, metadata, tensors)


def refuse_unreadable_types(file: GGUFFile) -> None:
    """Raise ModelFailure (foreign) that names every tensor type we cannot read faithfully."""
    unreadable: dict[str, list[str]] = {}
    for tensor in file.tensors.values():
        if tensor.type not in READABLE_TYPES:
            unreadable.setdefault(tensor.type, []).append(tensor.name)
    if not unreadable:
        return
    named = "; ".join(
        f"{kind} ({len(names)} tensors, such as {names[0]})"
        for kind, names in sorted(unreadable.items())
    )
    raise ModelFailure(
        "foreign",
        f"{file.path.name} holds tensor types that MLX has no exact form for: {named}.",
        f"Take a file of this model in one of {', '.join(READABLE_TYPES)}.",
    )
