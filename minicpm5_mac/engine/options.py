"""What an engine is started with."""

from __future__ import annotations

from typing import Literal

import msgspec

KvBits = Literal[16, 8, 4, "auto"]


class EngineOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which model, and how it runs.

    model: an alias, a hub repository, a folder, or an imported model's name. context: tokens
    wanted, None for as many as the model was made for and memory holds. kv_bits: of the KV cache;
    "auto" takes as many as the wanted context leaves room for. kernels: this project's Metal
    kernels where they are measured to be faster; without them plain MLX.
    """

    model: str
    context: int | None = None
    kv_bits: KvBits = 16
    kernels: bool = True
