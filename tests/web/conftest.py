"""A browser for the tests of the page, one for all of them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from served_chat import ServedChat

# The machine's network is closed, and a test must not lean on it anyway.
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def serve(tiny_model: Path) -> Iterator[Callable[..., ServedChat]]:
    """Starts `minicpm5-mac web`, with the tiny model where it is not told another."""
    started: list[ServedChat] = []

    def start(*flags: str, model: Path | None = tiny_model) -> ServedChat:
        started.append(ServedChat.start(model, *flags))
        return started[-1]

    yield start
    for chat in started:
        chat.end()


@pytest.fixture
async def browser() -> AsyncIterator[object]:
    """Chromium without a screen, driven by playwright."""
    playwright = pytest.importorskip(
        "playwright.async_api", reason="drives the browser: pip install playwright"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium for the page: apt-get install chromium")
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield browser
        await browser.close()
