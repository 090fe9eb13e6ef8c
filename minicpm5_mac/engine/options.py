"""What an engine is started with."""

from __future__ import annotations

from typing import Literal

import msgspec

KvBits = Literal[16, 8, 4]


class EngineOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which model, and how it runs.

    model: an alias, a hub repository, a folder, or an imported model's name. context: tokens
    wanted, None for as many as the model was made for and memory holds.
    """

    model: str
    context: int | None = None
