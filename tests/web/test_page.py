"""The page in a real browser, with the real app and the tiny model behind it."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from typing import Any

from browser_page import BrowserPage, opened
from PIL import Image
from served_chat import PATIENCE, ServedChat, slowed
from tiny.prompts import prompt

Serve = Callable[..., ServedChat]

FOREVER = prompt("endless_thinking").messages()[-1]["content"]
READY = "tiny-minicpm5 · thinking on"
THINKS = re.compile(r"tiny-minicpm5 · thinking \d")  # tokens, in the status line

ROW_ENDS = """Array.from(document.querySelectorAll(".xterm-rows > div"), (row) =>
  Math.round(row.lastElementChild?.getBoundingClientRect().right ?? 0)).filter((end) => end > 0)"""

UNDERSCORES = """(() => {
  const words = Array.from(document.querySelectorAll(".xterm-rows span"));
  const found = words.find((word) => word.textContent.includes("____"));
  if (!found) return null;
  const {x, width} = found.getBoundingClientRect();
  const {y, height} = found.closest(".xterm-rows > div").getBoundingClientRect();
  return {x, y, width, height};
})()"""


async def colours(page: BrowserPage, place: dict[str, float]) -> set[object]:
    """Of the pixels of a place."""
    picture = Image.open(io.BytesIO(await page.page.screenshot(clip=place)))
    return {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}


async def test_typing_chinese_resizing_reloading_in_mid_reply_and_escape(
    serve: Serve, browser: Any
):
    chat = serve()
    page = await opened(browser, chat)
    await page.shows(READY)
    # The focus is there without a click, and the token is not in the address any more.
    assert page.page.url == chat.page
    await page.page.keyboard.type("first words ")
    await page.page.keyboard.insert_text("你好。「世界」")  # as an input method commits it
    await page.shows("first words 你好。「世界」")
    # Wide characters are two cells wide, punctuation too: every row ends where the others do.
    ends = await page.page.evaluate(ROW_ENDS)
    assert max(ends) - min(ends) <= 2, ends

    columns = await page.page.evaluate("terminal.cols")
    await page.page.set_viewport_size({"width": 700, "height": 500})
    await page.value("terminal.cols", lambda now: now < columns)
    await page.shows("first words 你好。「世界」")

    await page.page.keyboard.press("Control+u")  # deletes the line
    await page.until(lambda shown: "first words" not in shown)
    app, model = chat.app(), chat.model_process()
    await page.page.keyboard.type(FOREVER)
    await page.page.keyboard.press("Enter")
    await page.until(THINKS.search)
    with slowed(model):
        await page.page.reload()
        # All is drawn again, also what does not change while a reply comes; and the reply goes on.
        parts = ("Step", "╭", "╰")
        after = await page.until(
            lambda shown: THINKS.search(shown) and all(part in shown for part in parts)
        )
        await page.until(lambda shown: THINKS.search(shown) and shown != after)
        assert (chat.app(), chat.model_process()) == (app, model)
        await page.page.keyboard.press("Escape")
    await page.shows(READY)
    assert (page.foreign, page.faults) == ([], [])


async def test_copy_paste_font_size_links_and_what_may_not_be_asked(serve: Serve, browser: Any):
    chat = serve()
    page = await opened(
        browser, chat, permissions=["clipboard-read", "clipboard-write"], color_scheme="light"
    )
    await page.page.evaluate("navigator.clipboard.writeText('pasted 文字\\nsecond line')")
    await page.page.keyboard.press("Control+v")
    await page.shows("second line")
    await page.shows("pasted 文字")  # a paste of two lines is no Enter

    # What the app sends to the clipboard arrives there; what it asks of it is not answered.
    await page.page.evaluate("terminal.write('\\x1b]52;c;5L2g5aW9\\x07\\x1b]52;c;?\\x07')")
    async with asyncio.timeout(PATIENCE):
        while await page.page.evaluate("navigator.clipboard.readText()") != "你好":
            await asyncio.sleep(0.1)
    assert "5L2g5aW9" not in await page.screen()

    columns = await page.page.evaluate("terminal.cols")
    await page.page.keyboard.press("Control+Equal")
    await page.value("terminal.cols", lambda now: now < columns)
    await page.page.keyboard.press("Control+Digit0")
    await page.value("terminal.cols", lambda now: now == columns)

    await page.page.keyboard.press("Control+u")
    await page.page.keyboard.type("____")
    for size in (8, 11, 14, 17, 20):
        await page.page.evaluate(f"setFontSize({size})")
        await page.value(UNDERSCORES, bool)
        async with asyncio.timeout(PATIENCE):
            while len(await colours(page, await page.page.evaluate(UNDERSCORES))) < 2:
                await asyncio.sleep(0.1)  # as long as no pixel of them is seen

    # The app took the light of the system, and the margin goes with it.
    await page.value("document.body.style.background", lambda now: now == "rgb(251, 250, 247)")

    # A link is opened only on the web, and only by a call that a click makes.
    await page.page.evaluate(
        "window.asked = []; window.open = (...words) => window.asked.push(words[0]); 0"
    )
    await page.page.evaluate(
        "['javascript:alert(1)', 'file:///etc/passwd', 'https://example.org/x'].forEach(openLink)"
    )
    assert await page.page.evaluate("window.asked") == ["https://example.org/x"]
    assert (page.foreign, page.faults) == ([], [])


async def test_a_second_page_is_told_and_the_end_is_told(serve: Serve, browser: Any):
    chat = serve()
    page = await opened(browser, chat)
    second = await page.page.context.new_page()
    await second.goto(chat.page)
    await second.get_by_text("The chat is open in another page").wait_for(timeout=PATIENCE * 1000)
    await page.page.close()
    await second.get_by_role("button", name="Try again").click()
    await BrowserPage(second, chat).shows("thinking on")
    chat.app().kill()
    await second.get_by_text("The chat had to end").wait_for(timeout=PATIENCE * 1000)
    assert "The log is in" in await second.locator("#notice").inner_text()
    await second.context.close()
    chat.none_left()
