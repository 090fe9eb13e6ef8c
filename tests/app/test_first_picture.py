"""The first picture needs neither the model's libraries nor those that fetch models."""

from __future__ import annotations

import json
import os
import subprocess
import sys

HEAVY = {"mlx", "mlx_lm", "transformers", "numpy", "huggingface_hub", "httpx2", "gguf", "torch"}

RUN = """
import asyncio, json, sys
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess

async def main():
    make = lambda name: EngineProcess(EngineOptions(name))
    given = frozenset({"model"})
    app = ChatApp(AppOptions(SessionSettings("/no/such/model"), make, given=given))
    async with app.run_test() as pilot:
        await pilot.pause()
        text = "\\n".join(strip.text for strip in app.screen._compositor.render_strips())
        print(json.dumps([text, sorted(sys.modules)]))
    app.live.close()

asyncio.run(main())
"""


def test_the_first_picture_loads_nothing_heavy():
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    text, modules = json.loads(run.stdout.splitlines()[-1])
    assert "MiniCPM5" in text
    assert "Message, /command, or @file" in text
    assert {name.partition(".")[0] for name in modules} & HEAVY == set()
