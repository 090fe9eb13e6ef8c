"""`python tests/web/screenshots.py`: the page's and the window's picture in assets/ anew.

The real page in Chromium and the real window in WebKitGTK under Xvfb, with the tiny model. Needs
what the tests of both need, and a Chinese font (`apt install fonts-wqy-zenhei`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [str(REPOSITORY), str(HERE), str(HERE.parent / "fixtures")]

from browser_page import opened  # noqa: E402  (the path comes first)
from PIL import Image, ImageGrab  # noqa: E402
from playwright.async_api import async_playwright  # noqa: E402
from served_chat import ServedChat  # noqa: E402

from minicpm5_mac.web.window import SIZE  # noqa: E402

TINY = HERE.parent / "fixtures" / "tiny-minicpm5"
ASSETS = REPOSITORY / "assets"
DISPLAY = ":97"
COLOURS = 128
STARTS, REPLIES = 30.0, 15.0
"""Seconds for the window, in which nothing can be asked for what it shows."""


def kept(image: Image.Image, name: str) -> None:
    """Few colours: a terminal has no more, and the file is a tenth."""
    image.convert("RGB").quantize(COLOURS).save(ASSETS / name, optimize=True)


async def picture_page() -> None:
    chat = ServedChat.start(TINY, "--temperature", "0.1")  # 0 has a notice
    async with async_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        size = {"width": SIZE[0], "height": SIZE[1]}
        page = await opened(browser, chat, viewport=size, color_scheme="dark")
        await page.shows("enter  send")
        for words, answer in (
            ("背一首诗。", "低头思故乡"),
            ("Show me a Python loop.", "It prints"),
        ):
            await page.page.keyboard.insert_text(words)
            await page.page.keyboard.press("Enter")
            await page.shows(answer)
            await page.shows("thinking on")
        await asyncio.sleep(1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.png")
            await page.page.screenshot(path=path)
            kept(Image.open(path), "screenshot-page.png")
        await browser.close()
    chat.end()


def picture_window() -> None:
    config = Path(os.environ["MINICPM5_MAC_HOME"]) / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'model = "{TINY}"\nsampling.temperature = 0.1\n')
    width, height = SIZE
    words = ["Xvfb", DISPLAY, "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp"]
    screen = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    environment = {**os.environ, "DISPLAY": DISPLAY, "GDK_BACKEND": "x11"}
    environment["PYTHONPATH"] = str(REPOSITORY)
    time.sleep(2)
    window = subprocess.Popen(
        [sys.executable, "-m", "minicpm5_mac.launcher.launch"], env=environment
    )
    try:
        time.sleep(STARTS)
        for line in ("Give me a formula.", "What is the capital of France?"):
            subprocess.run(["xdotool", "type", "--delay", "30", line], env=environment, check=True)
            subprocess.run(["xdotool", "key", "Return"], env=environment, check=True)
            time.sleep(REPLIES)
        kept(ImageGrab.grab(xdisplay=DISPLAY), "screenshot-window.png")
    finally:
        window.terminate()
        window.wait()
        screen.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["MINICPM5_MAC_HOME"] = home
        asyncio.run(picture_page())
        picture_window()
