"""Computed, not measured: what a KV cache takes, and the least time that a decode step can take."""

from __future__ import annotations

from dataclasses import dataclass

# GB/s that Apple publishes for each chip (technical specifications of the Macs that have it).
# Where a chip comes in two, the smaller stands first.
BANDWIDTHS: dict[str, tuple[int, ...]] = {
    "M1": (68,),
    "M2": (100,),
    "M3": (102,),
    "M4": (120,),
    "M5": (153,),
    "M1 Pro": (200,),
    "M2 Pro": (200,),
    "M3 Pro": (150,),
    "M4 Pro": (273,),
    "M5 Pro": (307,),
    "M1 Max": (400,),
    "M2 Max": (400,),
    "M3 Max": (307, 410),
    "M4 Max": (410, 546),
    "M5 Max": (460, 614),
    "M1 Ultra": (800,),
    "M2 Ultra": (800,),
    "M3 Ultra": (819,),
}

CONTEXTS = (8192, 32_768, 131_072)
KV_BITS = (16, 8, 4)

AFFINE_BYTES = 2 * 2  # a scale and a bias of 16 bits for each group


@dataclass(frozen=True)
class ModelShape:
    """Layers, KV heads, head size, bytes of all weights, and values in a group of the cache."""

    layers: int
    kv_heads: int
    head_dim: int
    weight_bytes: int
    group_size: int


@dataclass(frozen=True)
class MemoryRow:
    """A context with a cache of some bits: bytes of the cache, and milliseconds a token on each
    chip if weights and cache are read once each at the published bandwidth, and nothing else."""

    context: int
    kv_bits: int
    kv_bytes: int
    floor_ms: dict[str, float]


def kv_bytes_per_token(shape: ModelShape, kv_bits: int) -> int:
    """Bytes of one token's keys and values over all layers."""
    vector = shape.head_dim * kv_bits // 8
    if kv_bits < 16:
        vector += shape.head_dim // shape.group_size * AFFINE_BYTES
    return shape.layers * shape.kv_heads * 2 * vector


def memory_rows(shape: ModelShape) -> list[MemoryRow]:
    """Every context of CONTEXTS with every cache of KV_BITS."""
    rows = []
    for context in CONTEXTS:
        for kv_bits in KV_BITS:
            cache = context * kv_bytes_per_token(shape, kv_bits)
            read = shape.weight_bytes + cache
            floors = {
                name if len(speeds) == 1 else f"{name} {gb}": read / (gb * 1e9) * 1e3
                for name, speeds in BANDWIDTHS.items()
                for gb in speeds
            }
            rows.append(MemoryRow(context, kv_bits, cache, floors))
    return rows
