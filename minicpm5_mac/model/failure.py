"""Why a model could not be had, with the reason that the engine reports as ModelFailed."""

from __future__ import annotations

from typing import Literal

from minicpm5_mac.failure import Failure

ModelReason = Literal[
    "not_found", "offline", "incomplete", "corrupt", "foreign", "too_large", "download", "error"
]

EXIT_CODE = 3  # "the model could not be had", see cli/main.py


class ModelFailure(Failure):
    """A model could not be found, fetched, read or loaded.

    reason: as in events.ModelFailed. text says what was wrong, advice what to do.
    """

    def __init__(self, reason: ModelReason, text: str, advice: str = "") -> None:
        super().__init__(text, advice, EXIT_CODE)
        self.reason: ModelReason = reason
