"""Choosing a model: at the first start, later, and when one could not be had."""

from __future__ import annotations

from typing import Any

from textual.app import App

from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.events import ModelFailed


async def first_model(app: App[Any], name: str, ask: bool) -> str | None:
    return name


async def choose_model(app: App[Any], now: str) -> str | None:
    ways = [Way("2b", "MiniCPM5-2B"), Way("1b", "MiniCPM5-1B"), Way("demo", "Demo")]
    return await app.push_screen_wait(Choice("Model", "", ways, now))


async def after_failure(app: App[Any], name: str, failed: ModelFailed) -> str | None:
    return None
