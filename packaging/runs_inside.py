"""What is run inside of a bundle, by its own interpreter, to know that nothing is missing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

# Every module that is loaded must come from the app, and be there without a variable that says so.
ISOLATED = """
import sys, json, sqlite3, ssl, ctypes, zlib, decimal, csv, multiprocessing, unittest, asyncio
app = sys.argv[1]
files = [getattr(m, "__file__", None) for m in list(sys.modules.values())]
outside = [f for f in files if f and f != "<frozen>" and not f.startswith(app)]
outside += [p for p in sys.path if p and not p.startswith(app)]
assert not outside, outside
print("the standard library is the app's own")
"""

EVERYTHING = """
import importlib, pkgutil, sys
import minicpm5_mac, mlx_kernels
app, names = sys.argv[1], []
for package in (minicpm5_mac, mlx_kernels):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        # Programs, not modules: importing them runs them.
        if not found.name.endswith(("__main__", "sandbox.worker")):
            importlib.import_module(found.name)
            names.append(found.name)
outside = [m.__file__ for m in list(sys.modules.values())
           if getattr(m, "__file__", None) and not m.__file__.startswith(app)]
assert not outside, outside
from minicpm5_mac.launcher.own_python import own_environment
assert "PYTHONPATH" not in own_environment(), "the chat would be given a way it does not need"
print(f"{len(names)} modules of ours, {len(sys.modules)} in all, from the app alone")
"""

PILOT = """
import asyncio, sys
from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess
model = sys.argv[1]

async def talk():
    app = ChatApp(AppOptions(
        settings=SessionSettings(model=model, max_tokens=40, thinking=0),
        make_engine=lambda name: EngineProcess(EngineOptions(name)),
    ))
    try:
        async with app.run_test(size=(100, 30)) as pilot:
            async def until(happened):
                for _ in range(4000):
                    if happened():
                        return
                    await pilot.pause(0.05)
                raise SystemExit("it did not happen")
            await until(lambda: app.model.ready is not None and app.live.is_open)
            app.chat.composer.load("hello")
            await pilot.press("enter")
            await until(lambda: len(app.chat.transcript.messages) == 2)
            await until(lambda: not app.chat.reply.running)
            print("the terminal app had a reply")
    finally:
        app.live.close()

asyncio.run(talk())
"""

WEB = """
import re, signal, subprocess, sys, urllib.request
served = subprocess.Popen(
    [sys.executable, "-P", "-m", "minicpm5_mac", "web", "--no-open", "--model", sys.argv[1]],
    stdout=subprocess.PIPE, text=True)
try:
    for line in served.stdout:
        if link := re.search(r"http://127\\.0\\.0\\.1:\\S+", line):
            break
    else:
        raise SystemExit(f"no link; status {served.wait()}")
    page = urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(link[0]).read()
    assert b"<html" in page.lower(), page[:200]
    print(f"the page is served: {len(page)} bytes")
finally:
    served.send_signal(signal.SIGTERM)
    served.wait(60)
"""

# As py2app's stub does it: variables, then __boot__.py. Ours must have left the environment.
BOOT = """
import os, runpy, sys
sys.argv = ["MiniCPM5", "--version"]
try:
    runpy.run_path(os.environ["RESOURCEPATH"] + "/__boot__.py", run_name="__main__")
except SystemExit as ended:
    assert not ended.code, ended
left = [n for n in os.environ if n.startswith("PYTHON") or n in
        ("RESOURCEPATH", "EXECUTABLEPATH", "ARGVZERO", "SSL_CERT_FILE", "SSL_CERT_DIR")]
assert not left, left
print("the environment is the user's own again")
"""

TOKENIZER = """
import pathlib, sys
from mlx_lm.tokenizer_utils import load
import mlx_lm.generate
print("mlx-lm's tokenizer:", load(pathlib.Path(sys.argv[1])).encode("hello")[:4])
"""

REPLY = "<think>a sum</think>Four."


@dataclass(frozen=True)
class Run:
    """A command that must end with 0 and print `must_print`."""

    name: str
    command: tuple[str, ...]
    must_print: str
    given: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def runs(app: Path, model: Path) -> list[Run]:
    """All of them, for a bundle and the folder of a small model."""
    app = app.resolve()
    resources = app / "Contents" / "Resources"
    python = os.fspath(app / "Contents" / "MacOS" / "python")
    ours = (python, "-P", "-m", "minicpm5_mac")
    script = (python, "-P", "-c")
    tiny = os.fspath(model)
    question = "What is the capital of France?"  # which the tiny model was taught
    one_reply = ("chat", "--model", tiny, "-p", question, "--temperature", "0")
    from_stub = {
        "PYTHONHOME": os.fspath(resources),
        "PYTHONPATH": os.fspath(resources),
        "RESOURCEPATH": os.fspath(resources),
        "EXECUTABLEPATH": os.fspath(app / "Contents" / "MacOS" / "MiniCPM5"),
        "ARGVZERO": "MiniCPM5",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return [
        Run("own interpreter", (python, "-I", "-c", ISOLATED, os.fspath(app)), "the app's own"),
        Run("version", (*ours, "--version"), "minicpm5-mac "),
        Run("stub's start", (python, "-c", BOOT), "the user's own", variables=from_stub),
        Run("all modules", (*script, EVERYTHING, os.fspath(app)), "from the app alone"),
        Run("reply parser", (*ours, "parse"), '"Four."', given=REPLY),
        Run("mlx-lm", (*script, TOKENIZER, tiny), "mlx-lm's tokenizer"),
        Run("reply of the tiny model", (*ours, *one_reply), "Paris."),
        Run("terminal app", (*script, PILOT, tiny), "had a reply"),
        Run("web server", (*script, WEB, tiny), "the page is served"),
    ]
