"""Reading the sampling settings from what was typed into their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from minicpm5_mac.failure import Failure
from minicpm5_mac.request import Sampling


@dataclass(frozen=True)
class SamplingField:
    """One number. name: Sampling's; least, most: what is allowed, most None for no bound."""

    name: str
    label: str
    whole: bool
    least: float
    most: float | None
    note: str


FIELDS: tuple[SamplingField, ...] = (
    SamplingField("temperature", "Temperature", False, 0.0, 5.0, "0 always takes the likeliest"),
    SamplingField("top_p", "Top-p", False, 0.0, 1.0, "share of the likeliest tokens, 0 to 1"),
    SamplingField("min_p", "Min-p", False, 0.0, 1.0, "least share of the best token's, 0 to 1"),
    SamplingField("top_k", "Top-k", True, 0, None, "number of tokens, 0 is off"),
    SamplingField("repetition_penalty", "Repetition", False, 0.1, 5.0, "1 is off"),
    SamplingField("seed", "Seed", True, 0, 2**32 - 1, "the same seed, the same reply"),
)


def typed_values(sampling: Sampling) -> dict[str, str]:
    """What the fields show; an empty one leaves the choice to the model's own default."""
    return {
        field.name: ""
        if (value := getattr(sampling, field.name)) is None
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
        for field in FIELDS
    }


def read_sampling(typed: Mapping[str, str]) -> Sampling:
    """The settings in the fields. Raises Failure that names the first wrong one."""
    values = {field.name: read_number(field, typed[field.name]) for field in FIELDS}
    return msgspec.convert(values, Sampling)


def read_number(field: SamplingField, typed: str) -> float | int | None:
    """One field's number, None where it is empty. Raises Failure for anything not allowed."""
    text = typed.strip().replace(",", ".")
    if not text:
        return None
    try:
        value = int(text) if field.whole else float(text)
    except ValueError:
        kind = "a whole number" if field.whole else "a number"
        raise Failure(f"{field.label}: {typed.strip()} is not {kind}.") from None
    if not value >= field.least or (field.most is not None and not value <= field.most):
        bounds = f"at least {field.least:g}"
        if field.most is not None:
            bounds = f"from {field.least:g} to {field.most:.10g}"
        raise Failure(f"{field.label} must be {bounds}.")
    return value


def read_thinking(typed: str) -> int | None:
    """Thinking from `on`, `off` or a number of tokens: None is no limit, 0 is off.

    Raises Failure for anything else.
    """
    word = typed.strip().lower()
    if word in ("on", "yes", ""):
        return None
    if word in ("off", "no"):
        return 0
    if word.isdecimal():
        return int(word)
    raise Failure(f"Thinking cannot be {typed.strip()!r}.", "Say on, off, or a number of tokens.")
