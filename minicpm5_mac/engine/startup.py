"""Fetching and loading a model, told as events."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Generator, Iterator

from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import Event, ModelFailed, ModelReady, ModelStage
from minicpm5_mac.failure import Failure
from minicpm5_mac.model.check import CheckedModel, check_model
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.fit import Fit, fit, memory_limit
from minicpm5_mac.model.folder import ModelFolder
from minicpm5_mac.model.loading import LoadedModel, device_kind, load, number_bytes
from minicpm5_mac.model.resolve import resolve

log = logging.getLogger(__name__)


def start_model(options: EngineOptions) -> Generator[Event, None, tuple[LoadedModel, int] | None]:
    """Yields what happens, ending in ModelReady or ModelFailed.

    Returns the model and the tokens of context it runs with, or None.
    """
    try:
        folder = yield from _resolved(options.model)
        yield ModelStage("loading", folder.name)
        limit = memory_limit()
        checked = check_model(folder.path)
        kv_bits = _kv_bits(checked, options, limit)
        loaded = load(
            folder.path,
            checked.config,
            available_memory=limit,
            kv_bits=kv_bits,
            kernels=options.kernels,
        )
        fits = _fit(loaded, options, limit)
    except ModelFailure as failure:
        yield ModelFailed(failure.reason, failure.text, failure.advice)
        return None
    except Failure as failure:
        yield ModelFailed("error", failure.text, failure.advice)
        return None
    except Exception as error:
        log.exception("the model could not be loaded")
        yield ModelFailed(
            "error",
            f"The model could not be loaded: {type(error).__name__}: {error}",
            "The log of the model process has the details.",
        )
        return None
    notes = loaded.notes
    if options.context is None and fits.context < loaded.context_length:
        notes += (
            f"The context is {fits.context:,} of the model's {loaded.context_length:,} tokens: "
            "that is what memory holds.",
        )
    yield ModelReady(
        name=folder.name,
        path=str(folder.path),
        revision=folder.revision,
        device=loaded.device,
        quantization=loaded.quantization,
        weight_bytes=loaded.weight_bytes,
        kv_bytes_per_token=fits.kv_bytes_per_token,
        context_limit=fits.context,
        thinking=loaded.encoder.tokenizer.has_thinking,
        notes=notes,
    )
    return loaded, fits.context


def _resolved(name: str) -> Generator[Event, None, ModelFolder]:
    """`resolve`, which calls back, as a stream: it runs in a thread of its own."""
    found: list[ModelFolder] = []
    failed: list[BaseException] = []
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            found.append(resolve(name, on_event=events.put))
        except BaseException as error:
            failed.append(error)
        finally:
            events.put(None)

    threading.Thread(target=work, name="resolve-model", daemon=True).start()
    stream: Iterator[Event | None] = iter(events.get, None)
    for event in stream:
        if event is not None:
            yield event
    if failed:
        raise failed[0]
    return found[0]


def _kv_bits(checked: CheckedModel, options: EngineOptions, limit: int) -> int:
    """Bits of the KV cache, before anything is loaded. Raises ModelFailure where nothing fits.

    A computer that swaps is worse than a message.
    """
    wanted = options.context or int(checked.config.get("max_position_embeddings") or 2048)
    numbers = number_bytes(device_kind())
    choices = [options.kv_bits] if options.kv_bits != "auto" else [16, 8, 4]
    for bits in choices:
        result = fit(checked.config, checked.weight_bytes, limit, wanted, bits, numbers)
        if result.fits:
            return bits
    if options.context is None and result.largest_context > 0:
        return choices[-1]  # with a context that fits
    raise ModelFailure("too_large", result.message, result.advice)


def _fit(loaded: LoadedModel, options: EngineOptions, limit: int) -> Fit:
    """The context that is run with: what was asked for, or as much as there is and fits."""
    wanted = min(options.context or loaded.context_length, loaded.context_length)
    numbers = number_bytes(loaded.device)

    def fits(context: int) -> Fit:
        return fit(loaded.config, loaded.weight_bytes, limit, context, loaded.kv_bits, numbers)

    result = fits(wanted)
    if not result.fits and options.context is None and result.largest_context > 0:
        result = fits(result.largest_context)
    if not result.fits:
        raise ModelFailure("too_large", result.message, result.advice)
    return result
