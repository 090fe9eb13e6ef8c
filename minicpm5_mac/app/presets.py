"""System prompts to choose from: a few of ours, and those of the user's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A system prompt with a name; an empty text is no system prompt."""

    name: str
    text: str


BUILT_IN: tuple[Preset, ...] = (
    Preset("None", ""),
    Preset("Concise", "Answer briefly and to the point. Leave out introductions and summaries."),
    Preset(
        "Programmer",
        "You help with programming. Give working code first, then one short explanation. "
        "Say plainly when you are not sure.",
    ),
    Preset(
        "Teacher",
        "Explain step by step for someone new to the subject, with one small example.",
    ),
    Preset(
        "Translator",
        "Translate what the user writes: Chinese into English, anything else into Chinese. "
        "Give the translation only.",
    ),
)


def presets(own: Mapping[str, str]) -> tuple[Preset, ...]:
    """All presets. own: the user's, by name; one with a built-in's name takes its place."""
    theirs = tuple(Preset(name, text) for name, text in own.items())
    names = {preset.name.casefold() for preset in theirs}
    return tuple(p for p in BUILT_IN if p.name.casefold() not in names) + theirs
