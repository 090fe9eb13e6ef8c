"""Driving the app in tests: waiting for what must happen, sending messages, reading the screen."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from minicpm5_mac.app.chat_app import ChatApp

PATIENCE = 60.0
"""Seconds until a wait for something that must happen is a failure: nothing is measured by it."""


async def until(pilot: Pilot[None], happened: Callable[[], object], what: str = "") -> None:
    """Wait until something is so. Fails, with the screen's text, where it never is."""
    end = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > end:
            pytest.fail(f"it did not happen: {what or happened}\n{screen_text(pilot.app)}")
        await pilot.pause(0.02)


async def idle(pilot: Pilot[None]) -> None:
    """Wait until a model is loaded and no reply runs."""
    app = pilot.app
    assert isinstance(app, ChatApp)
    await until(
        pilot,
        lambda: app.model.ready is not None and app.live.is_open and not app.chat.reply.running,
        "idle",
    )


async def say(pilot: Pilot[None], text: str) -> None:
    """Send a message and wait for the end of its reply."""
    app = pilot.app
    assert isinstance(app, ChatApp)
    await idle(pilot)
    before = len(app.chat.transcript.messages)
    app.chat.composer.load(text)
    await pilot.press("enter")
    await until(pilot, lambda: len(app.chat.transcript.messages) == before + 2, "two messages")
    await idle(pilot)


def screen_text(app: object) -> str:
    """What the terminal shows now, as text."""
    assert isinstance(app, ChatApp)
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in lines)
