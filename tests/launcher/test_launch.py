"""What a double-click does where it cannot open anything: it says so, and where the log is."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minicpm5_mac.launcher import launch as launch_module
from minicpm5_mac.launcher.single_instance import Place, SingleInstance, open_here


def launch(own_home: Path, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minicpm5_mac.launcher.launch", *flags],
        env={
            **{k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")},
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS opens a window or a terminal")
@pytest.mark.parametrize("flags", [["--terminal"], [], ["-psn_0_12345"]])
def test_without_a_window_or_a_terminal_the_message_says_what_to_do(own_home: Path, flags):
    run = launch(own_home, *flags)
    log = (own_home / "log" / "web.log").read_text()
    assert run.returncode == 1
    # Standard error went to the log before anything was said; an alert is for macOS.
    assert run.stdout == run.stderr == ""
    assert "MiniCPM5 cannot be opened" in log
    assert "minicpm5-mac chat" in log
    assert str(own_home / "log") in log
    assert "Traceback" not in log


@pytest.mark.skipif(os.name != "posix", reason="a folder that cannot be written")
def test_a_log_that_cannot_be_written_is_told_too(tmp_path: Path, own_home: Path):
    (tmp_path / "file").write_text("")
    run = launch(own_home, MINICPM5_MAC_HOME=str(tmp_path / "file"))
    assert run.returncode == 1
    assert "MiniCPM5 cannot be opened" in run.stderr


@pytest.mark.parametrize("place", ["terminal", "browser"])
def test_a_window_that_comes_second_opens_none_and_says_so_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, place: Place
):
    done: list[str] = []
    monkeypatch.setattr(launch_module, "open_in_terminal", lambda: done.append("terminal"))
    monkeypatch.setattr("minicpm5_mac.web.window.run_window", lambda *_: done.append("window"))
    here = open_here(place)
    assert isinstance(here, SingleInstance)
    launch_module.open_chat(in_terminal=False)
    assert done == ["terminal"]  # where `in_terminal` says who has the lock
    here.release()
    launch_module.open_chat(in_terminal=False)
    assert done == ["terminal", "window"]


def test_whatever_fails_is_shown_with_the_place_of_the_log(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
):
    shown: list[tuple[str, str]] = []

    def fail(*, in_terminal: bool) -> None:
        raise RuntimeError("something nobody thought of")

    monkeypatch.setattr(launch_module, "open_chat", fail)
    monkeypatch.setattr(launch_module, "show_alert", lambda *texts: shown.append(texts))
    monkeypatch.setattr("minicpm5_mac.web.log_file.redirect_output", lambda path: None)
    for name in ("minicpm5_mac", "aiohttp", "pywebview"):  # put back after the test
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    monkeypatch.chdir(own_home.parent)
    assert launch_module.main([]) == 1
    ((title, text),) = shown
    assert title == "MiniCPM5 cannot be opened"
    assert "something nobody thought of" in text
    assert f"The log files are in {own_home / 'log'}" in text
    assert "Traceback" in (own_home / "log" / "web.log").read_text()
