"""The page in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from served_chat import PATIENCE, ServedChat

SCREEN = """Array.from({length: terminal.rows}, (_, row) =>
  terminal.buffer.active.getLine(row).translateToString(true)).join("\\n")"""


class BrowserPage:
    """One page: what its terminal shows, what it asked of other hosts, what went wrong in it."""

    def __init__(self, page: Any, chat: ServedChat) -> None:
        self.page = page
        self.foreign: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda sent: self._note_address(sent.url, chat.origin))
        page.on("console", lambda said: self._note_fault(said.type, said.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _note_address(self, address: str, origin: str) -> None:
        if not address.startswith((origin, "data:")):
            self.foreign.append(address)

    def _note_fault(self, kind: str, text: str) -> None:
        if kind == "error":
            self.faults.append(text)

    async def screen(self) -> str:
        return await self.page.evaluate(SCREEN)

    async def value(self, script: str, true: Callable[[Any], object]) -> Any:
        """What the script gives, once that is as wanted. The page's policy forbids playwright's
        own waiting."""
        given = None
        try:
            async with asyncio.timeout(PATIENCE):
                while not true(given := await self.page.evaluate(script)):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"this it was and stayed:\n{given}") from None
        return given

    async def until(self, true: Callable[[str], object]) -> str:
        """The screen, once it is as wanted."""
        return await self.value(SCREEN, true)

    async def shows(self, words: str) -> str:
        return await self.until(lambda shown: words in shown)


async def opened(
    browser: Any, chat: ServedChat, words: str = "thinking on", **context: Any
) -> BrowserPage:
    """The chat's page, once it shows the words."""
    page = BrowserPage(await (await browser.new_context(**context)).new_page(), chat)
    await page.page.goto(chat.link)
    await page.shows(words)
    return page
