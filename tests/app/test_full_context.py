"""A message that does not fit: what is said, and that the conversation goes on."""

from __future__ import annotations

import pytest
from app_driver import idle, screen_text, until
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.screens.choice import Choice

QUESTION = "What is the capital of France?"
LIMIT = 512


@pytest.fixture(scope="module")
def context() -> int:
    return LIMIT


async def ask_in_vain(pilot: Pilot[None], app: ChatApp, text: str) -> list[str | None]:
    """Send what does not fit; returns the keys of the ways on that the dialog offers."""
    await idle(pilot)
    app.chat.composer.load(text)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, Choice) and app.screen.query(OptionList))
    return [way.id for way in app.screen.query_one(OptionList).options]


async def test_after_a_message_that_was_too_long_another_one_is_answered(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=(110, 34)) as pilot:
        assert await ask_in_vain(pilot, app, f"{QUESTION}\n" * 200) == ["e", "n"]
        said = str(app.screen.query_one(".dialog-text", Static).content)
        assert "tokens and room for a reply; the context holds 512." in said
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: "tab and e" in screen_text(app))
        assert "ctrl+g" not in screen_text(app)
        assert await ask_in_vain(pilot, app, QUESTION) == ["s", "e", "n"]
        await pilot.press("s")
        await until(pilot, lambda: app.live.session.messages()[-1].role == "assistant")
        await idle(pilot)
        assert "Paris" in app.live.session.messages()[-1].content
        assert not app.chat.full


async def test_the_dialog_lets_the_message_be_edited(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=(110, 34)) as pilot:
        await ask_in_vain(pilot, app, f"{QUESTION}\n" * 200)
        await pilot.press("e")
        await until(pilot, lambda: app.chat.unsent.editing is not None)
        app.chat.composer.load(QUESTION)
        await pilot.press("enter")
        await until(pilot, lambda: app.live.session.messages()[-1].role == "assistant")
        await idle(pilot)
        assert [m.role for m in app.live.session.messages()] == ["user", "assistant"]
        assert not app.chat.full
