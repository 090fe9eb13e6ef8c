"""The command file, and how it finds and starts our own interpreter."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from minicpm5_mac.launcher import own_python
from minicpm5_mac.launcher.command_file import command_script, open_in_terminal, write_command_file
from minicpm5_mac.launcher.own_python import chat_command, own_environment
from minicpm5_mac.launcher.single_instance import Place, SingleInstance, open_here


def test_where_the_interpreter_finds_our_packages_nothing_is_added(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"purelib": own_python.PACKAGES})
    assert own_environment() == dict(os.environ)


def test_in_a_work_tree_our_environment_starts_our_interpreter_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sysconfig.get_paths", dict)
    (tmp_path / "minicpm5_mac.py").write_text("raise SystemExit('the folder was imported from')")
    python, *flags, _chat = chat_command()
    run = subprocess.run(
        [python, *flags, "--version"],
        cwd=tmp_path,
        env=own_environment(),
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith("minicpm5-mac "), run.stderr


def test_the_script_survives_any_path(own_home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/Apps of Ada's/$(touch x)/python")
    script = command_script()
    assert subprocess.run(["/bin/sh", "-n"], input=script.encode(), check=False).returncode == 0
    # What the shell makes of the line that starts us, with `env` in our stead.
    shown = script.replace("/usr/bin/env", "printf '%s\\n'", 1).replace("read -r _", ":")
    run = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert f"MINICPM5_MAC_HOME={own_home}" in lines
    assert "/Apps of Ada's/$(touch x)/python" in lines


def test_the_file_is_executable_by_this_user_alone_and_can_be_written_again():
    write_command_file()
    assert write_command_file().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("place", "terminal", "said"),
    [
        ("terminal", "/dev/ttys009", b"already open in a terminal (/dev/ttys009)"),
        ("window", "", b"already open in a window of its own"),
        ("browser", "", b"already open in a browser"),
    ],
)
def test_a_second_start_in_a_terminal_says_where_the_chat_is_open(
    place: Place, terminal: str, said: bytes
):
    here = open_here(place, terminal)
    assert isinstance(here, SingleInstance)
    ours, theirs = pty.openpty()
    try:
        run = subprocess.Popen([write_command_file()], stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        while b"Return closes this" not in shown:
            shown += os.read(ours, 4096)
        assert said in shown
        os.write(ours, b"\n")
        assert run.wait(60) == 0
    finally:
        os.close(ours)
        here.release()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS opens a terminal")
def test_elsewhere_than_on_macos_it_is_said_what_to_do():
    with pytest.raises(Exception, match="minicpm5-mac chat"):
        open_in_terminal()


def test_what_fails_in_the_terminal_is_told_with_the_place_of_the_log(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    run = subprocess.run(
        [write_command_file()], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert f"MiniCPM5 ended with status 1. Its log files are in {own_home / 'log'}" in run.stdout
