"""Projections of one input joined into one matrix product.

Rows of a weight are its outputs, and affine groups run along its inputs, so joining concatenates
rows and quantizes nothing anew: every output is the same sum as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import mlx.nn as nn

Projection = nn.Linear | nn.QuantizedLinear

# Arrays of a projection whose first axis is its outputs.
_ARRAYS = ("weight", "scales", "biases", "bias")


def can_join(projections: Sequence[nn.Module]) -> bool:
    """Whether these are of one kind: all plain of one dtype, or all quantized in one way."""
    first = projections[0]
    return all(_kind(p) is not None and _kind(p) == _kind(first) for p in projections)


def _kind(projection: nn.Module) -> tuple[object, ...] | None:
    # By class, not by isinstance: an adapter (LoRA) or a sharded layer computes something else.
    if type(projection) not in (nn.Linear, nn.QuantizedLinear):
        return None
    arrays = tuple((name, projection[name].dtype) for name in _held(projection))
    quantization = tuple(getattr(projection, name, None) for name in _QUANTIZATION)
    return type(projection), arrays, quantization


def _held(projection: nn.Module) -> list[str]:
    return [name for name in _ARRAYS if projection.get(name) is not None]


_QUANTIZATION = ("group_size", "bits", "mode")


def joined(projections: Sequence[Projection]) -> Projection:
    """One projection whose outputs are those of all, in order.

    The arrays of the given projections are taken out of them as they are copied, so that no second
    copy of a weight stays in memory; those projections are of no use afterwards.
    """
    first = projections[0]
    arrays = {}
    for name in _held(first):
        arrays[name] = mx.concatenate([p.pop(name) for p in projections], axis=0)
        mx.eval(arrays[name])
    if isinstance(first, nn.QuantizedLinear):
        whole: Projection = nn.QuantizedLinear(
            first.group_size,
            1,
            bias="bias" in arrays,
            group_size=first.group_size,
            bits=first.bits,
            mode=first.mode,
        )
    else:
        whole = nn.Linear(1, 1, bias="bias" in arrays)
    whole.update(arrays)
    return whole
