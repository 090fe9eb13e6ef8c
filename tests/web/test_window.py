"""The window of its own, in WebKitGTK on a virtual screen: the nearest thing to macOS's WebKit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from served_chat import PATIENCE, wait_until

from minicpm5_mac.launcher.single_instance import OpenChat, SingleInstance, open_here

pytest.importorskip("Xlib", reason="closes the window: pip install python-xlib")
from Xlib.display import Display
from Xlib.protocol.event import ClientMessage

APT = "apt-get install xvfb xdotool gir1.2-webkit2-4.1 libgirepository1.0-dev libcairo2-dev"


@pytest.fixture
def screen() -> Iterator[str]:
    """The DISPLAY of a virtual screen."""
    for program in ("Xvfb", "xdotool"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} for the window: {APT}")
    if importlib.util.find_spec("webview") is None or importlib.util.find_spec("gi") is None:
        pytest.skip("no pywebview for the window: pip install pywebview 'PyGObject<3.51'")
    found = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import gi; gi.require_version('WebKit2', '4.1')",
        ],
        capture_output=True,
    )
    if found.returncode != 0:
        pytest.skip(f"no WebKitGTK for the window: {APT}")
    ready, told = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(told), "-screen", "0", "1200x800x24", "-nolisten", "tcp"],
        pass_fds=[told],
        stderr=subprocess.DEVNULL,
    )
    os.close(told)
    with os.fdopen(ready) as numbers:
        number = numbers.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait()


def launched(screen: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "minicpm5_mac.launcher.launch", "-psn_0_12345"],
        env={
            **os.environ,
            "DISPLAY": screen,
            "GDK_BACKEND": "x11",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        stderr=subprocess.PIPE,
    )


def xdotool(screen: str, *words: str) -> str:
    run = subprocess.run(
        ["xdotool", *words], env={**os.environ, "DISPLAY": screen}, capture_output=True, text=True
    )
    return run.stdout


def command_of(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def press_close_button(screen: str, window: int) -> None:
    """What a window manager does (ICCCM, WM_DELETE_WINDOW); there is none on the screen."""
    display = Display(screen)
    protocols, delete = map(display.intern_atom, ("WM_PROTOCOLS", "WM_DELETE_WINDOW"))
    target = display.create_resource_object("window", window)
    target.send_event(
        ClientMessage(window=target, client_type=protocols, data=(32, [delete, 0, 0, 0, 0]))
    )
    display.sync()  # the server has it before the connection ends
    display.close()


@pytest.mark.parametrize(
    "ending", ["the app is left", "the window is closed", "the window's process is killed"]
)
def test_the_window_opens_is_found_by_a_second_start_and_its_end_ends_all(
    screen: str, tiny_model: Path, own_home: Path, ending: str
):
    (own_home / "config").mkdir(parents=True)
    (own_home / "config" / "config.toml").write_text(f'model = "{tiny_model}"\n')
    first = launched(screen)
    family: dict[int, psutil.Process] = {}

    def model_runs() -> bool:
        assert first.poll() is None, (own_home / "log" / "web.log").read_text()
        for process in psutil.Process(first.pid).children(recursive=True):
            family[process.pid] = process
        return any("minicpm5_mac.engine.child" in command_of(p) for p in family.values())

    try:
        # The page asks for the app only once it is drawn and has the guard's cookie.
        wait_until(model_runs, "the model process of the chat in the window")
        open_now = open_here("window")
        assert isinstance(open_now, OpenChat)
        assert (open_now.place, open_now.pid) == ("window", first.pid)

        second = launched(screen)
        second.communicate(timeout=PATIENCE)
        assert second.returncode == 0  # it asked the first to come to the front, and went
        assert first.poll() is None

        model_runs()
        window = xdotool(screen, "search", "--name", "MiniCPM5").split()[-1]
        if ending == "the app is left":
            xdotool(screen, "windowfocus", "--sync", window)
            xdotool(screen, "key", "ctrl+q")
        elif ending == "the window is closed":
            # Once was not enough in one run on a busy machine.
            def closed() -> bool:
                for one in xdotool(screen, "search", "--name", "MiniCPM5").split():
                    press_close_button(screen, int(one))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    first.wait(5)
                return first.poll() is not None

            wait_until(closed, "the end of the closed window")
        else:
            first.kill()
        first.wait(PATIENCE)
        assert first.returncode == (-9 if ending == "the window's process is killed" else 0)
        wait_until(lambda: not any(p.is_running() for p in family.values()), f"the end of {family}")
        freed = open_here("terminal")
        assert isinstance(freed, SingleInstance)
        freed.release()
    finally:
        for process in family.values():
            if process.is_running():
                process.kill()
        if first.poll() is None:
            first.kill()
        first.communicate()
