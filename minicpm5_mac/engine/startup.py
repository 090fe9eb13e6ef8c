"""Fetching and loading a model, told as events."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import Event, ModelFailed, ModelReady, ModelStage
from minicpm5_mac.failure import Failure
from minicpm5_mac.model.loading import LoadedModel, load


def start_model(options: EngineOptions) -> Generator[Event, None, tuple[LoadedModel, int] | None]:
    """Yields what happens, ending in ModelReady or ModelFailed.

    Returns the model and the tokens of context it runs with, or None.
    """
    try:
        folder = Path(options.model)
        yield ModelStage("loading", str(folder))
        loaded = load(folder)
        limit = min(loaded.context_length, options.context or loaded.context_length)
    except Failure as failure:
        yield ModelFailed("error", failure.text, failure.advice)
        return None
    yield ModelReady(
        name=options.model,
        path=str(folder),
        revision="",
        device=loaded.device,
        quantization=loaded.quantization,
        weight_bytes=loaded.weight_bytes,
        kv_bytes_per_token=loaded.kv_bytes_per_token,
        context_limit=limit,
        thinking=loaded.encoder.tokenizer.has_thinking,
        notes=loaded.notes,
    )
    return loaded, limit
