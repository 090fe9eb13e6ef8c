"""Does a model fit: its weights and the KV cache of the wanted context, against memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicpm5_mac.model.llama_shapes import head_dimension, kv_heads

KV_GROUP_SIZE = 64

# What a prefill chunk of this many tokens needs beside weights and cache. Two rows of the inner
# size, four of the hidden size, in float32, are live at the widest point of a layer.
_CHUNK_TOKENS = 512
_FLOAT32_BYTES = 4

_LEAST_CONTEXT = 512  # tokens; less is no conversation


@dataclass(frozen=True)
class Fit:
    """Bytes and tokens.

    fits: the wanted context fits. largest_context: the most tokens that would, 0 where not even
    the weights do. message: for the user, empty where it fits; advice: what to do.
    """

    fits: bool
    weight_bytes: int
    kv_bytes_per_token: int
    needed_bytes: int
    memory_limit: int
    context: int
    largest_context: int
    message: str = ""
    advice: str = ""


def kv_bytes_per_token(config: dict[str, Any], kv_bits: int = 16, number_bytes: int = 2) -> int:
    """Bytes that one token's keys and values take over all layers.

    kv_bits: 16 for plain numbers of `number_bytes`; 8 or 4 for MLX's affine quantization, with a
    scale and a bias of `number_bytes` a group: D * bits / 8 + D / group * 2 * number_bytes a
    head-vector.
    """
    size = head_dimension(config)
    if kv_bits < 16:
        vector = size * kv_bits // 8 + size // KV_GROUP_SIZE * 2 * number_bytes
    else:
        vector = size * number_bytes
    return config["num_hidden_layers"] * 2 * kv_heads(config) * vector


def fit(
    config: dict[str, Any],
    weight_bytes: int,
    memory_limit: int,
    context: int,
    kv_bits: int = 16,
    number_bytes: int = 2,
) -> Fit:
    """Weights, cache of `context` tokens and a prefill chunk's activations against the limit.

    weight_bytes: as they will be in memory. memory_limit: bytes, see `memory_limit`. kv_bits,
    number_bytes: see `kv_bytes_per_token`.
    """
    a_token = kv_bytes_per_token(config, kv_bits, number_bytes)
    fixed = weight_bytes + _activation_bytes(config)
    # Prefill over a quantized cache has one layer's rows dequantized at a time.
    spare = kv_bytes_per_token({**config, "num_hidden_layers": 1}, 16, number_bytes)
    per_token = a_token + (spare if kv_bits < 16 else 0)
    needed = fixed + per_token * context
    largest = max(0, memory_limit - fixed) // per_token
    if needed <= memory_limit:
        return Fit(
            True, weight_bytes, a_token, needed, memory_limit, context, min(largest, context)
        )
    if largest < _LEAST_CONTEXT:
        message = (
            f"The model does not fit: it needs {_gigabytes(fixed)} before the first token, and "
            f"{_gigabytes(memory_limit)} may be used."
        )
        advice = "Use a smaller or more strongly quantized model, or close other programs."
    else:
        message = (
            f"A context of {context:,} tokens does not fit: with the weights it needs "
            f"{_gigabytes(needed)}, and {_gigabytes(memory_limit)} may be used."
        )
        advice = f"A context of {largest:,} tokens fits."
    return Fit(
        False, weight_bytes, a_token, needed, memory_limit, context, largest, message, advice
    )


def memory_limit() -> int:
    """Bytes a model may use: what Metal recommends at most, or what is free for a CPU."""
    import mlx.core as mx  # deferred: it must not be loaded before OpenBLAS

    recommended = mx.device_info().get("max_recommended_working_set_size")
    if isinstance(recommended, int) and recommended > 0:
        return recommended
    return _available_memory()


def _activation_bytes(config: dict[str, Any]) -> int:
    widest = 2 * config["intermediate_size"] + 4 * config["hidden_size"]
    return _CHUNK_TOKENS * widest * _FLOAT32_BYTES + config["vocab_size"] * _FLOAT32_BYTES


def _available_memory() -> int:
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
    except FileNotFoundError:  # a Mac without Metal: a virtual machine
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # Linux: what can be had without swapping, and less where a container's limit says so.
    fields = dict(line.split(":", 1) for line in meminfo.splitlines())
    available = int(fields["MemAvailable"].split()[0]) * 1024
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    try:
        room = int(limit.read_text()) - int(used.read_text())
    except (OSError, ValueError):  # no such limit, or "max"
        return available
    return min(available, max(0, room))


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
