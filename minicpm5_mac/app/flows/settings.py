"""Changing how replies are asked for: thinking, sampling, the system prompt, the colours."""

from __future__ import annotations

from typing import Any

import msgspec
from textual.app import App

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.presets import Preset
from minicpm5_mac.app.sampling_form import read_thinking
from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.app.screens.editing import Editing
from minicpm5_mac.app.screens.sampling import Drawing, SamplingScreen
from minicpm5_mac.app.themes import CHOICES

_BUDGETS = (256, 1024, 4096)


async def choose_thinking(
    app: App[Any], now: SessionSettings, argument: str
) -> SessionSettings | None:
    """The settings with another thinking limit: from the argument, or asked for. Raises Failure."""
    if not argument:
        ways = [
            Way("on", "On", "as long as the model likes"),
            *(Way(str(n), f"At most {n:,} tokens", "then it answers") for n in _BUDGETS),
            Way("off", "Off", "answers at once"),
        ]
        selected = "on" if now.thinking is None else "off" if now.thinking == 0 else ""
        selected = selected or str(now.thinking)
        chosen = await app.push_screen_wait(Choice("Thinking", "", ways, selected))
        if chosen is None:
            return None
        argument = chosen
    return msgspec.structs.replace(now, thinking=read_thinking(argument))


async def choose_sampling(app: App[Any], now: SessionSettings) -> SessionSettings | None:
    """The settings with what the sampling screen says; None if it was closed."""
    drawing = await app.push_screen_wait(SamplingScreen(Drawing(now.sampling, now.thinking)))
    if drawing is None:
        return None
    return msgspec.structs.replace(now, sampling=drawing.sampling, thinking=drawing.thinking)


async def choose_system_prompt(
    app: App[Any], now: SessionSettings, presets: tuple[Preset, ...]
) -> SessionSettings | None:
    """A preset, or one that is written now."""
    ways = [Way(preset.name, preset.name, _first_words(preset.text)) for preset in presets]
    ways.append(Way("write…", "Write one", "starts from the one in use"))
    texts = {preset.name: preset.text for preset in presets}
    in_use = next((name for name, text in texts.items() if text == now.system_prompt), "write…")
    chosen = await app.push_screen_wait(
        Choice("System prompt", "For this conversation, from the next reply on.", ways, in_use)
    )
    if chosen is None:
        return None
    text = texts.get(chosen)
    if text is None:
        text = await app.push_screen_wait(
            Editing("System prompt", now.system_prompt, "What the model is told before all else.")
        )
        if text is None:
            return None
    return msgspec.structs.replace(now, system_prompt=text.strip())


async def choose_colours(app: App[Any], now: str) -> str | None:
    """One of the theme setting's choices."""
    notes = {
        "auto": "by what the terminal says",
        "256": "dark, for terminals of 256 colours",
        "light-256": "light, for terminals of 256 colours",
    }
    ways = [Way(choice, choice.capitalize(), notes.get(choice, "")) for choice in CHOICES]
    return await app.push_screen_wait(Choice("Colours", "", ways, now))


def _first_words(text: str, longest: int = 44) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= longest else line[: longest - 1] + "…"
