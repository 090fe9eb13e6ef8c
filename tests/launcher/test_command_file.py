"""The command file and the environments: the bundle's variables reach our interpreter alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from minicpm5_mac.launcher.command_file import command_script, open_in_terminal, write_command_file
from minicpm5_mac.launcher.own_python import chat_command, own_environment, user_environment
from minicpm5_mac.launcher.single_instance import Place, SingleInstance, open_here

BUNDLE = {
    "RESOURCEPATH": "/Applications/MiniCPM5.app/Contents/Resources",
    "PYTHONHOME": "/Applications/MiniCPM5.app/Contents/Resources",
    "PYTHONPATH": "/Applications/MiniCPM5.app/Contents/Resources/lib",
    "PYTHONUNBUFFERED": "1",
    "ARGVZERO": "MiniCPM5",
    "EXECUTABLEPATH": "/Applications/MiniCPM5.app/Contents/MacOS/MiniCPM5",
    "__PYVENV_LAUNCHER__": "/x",
}
USERS = {"HOME": "/Users/ada", "PATH": "/usr/bin", "LANG": "zh_CN.UTF-8"}


def test_a_program_of_the_users_gets_nothing_of_the_bundle():
    assert user_environment({**USERS, **BUNDLE}) == USERS


def test_outside_a_bundle_the_users_own_python_settings_are_the_users():
    own = {**USERS, "PYTHONPATH": "/mine"}
    assert user_environment(own) == own


def test_our_interpreter_gets_the_two_it_needs():
    given = own_environment({**USERS, **BUNDLE})
    assert given.pop("PYTHONHOME") == BUNDLE["PYTHONHOME"]
    assert (Path(given.pop("PYTHONPATH")) / "minicpm5_mac").is_dir()
    assert given == USERS


def test_our_environment_starts_our_interpreter_anywhere(tmp_path: Path):
    (tmp_path / "minicpm5_mac.py").write_text("raise SystemExit('the folder was imported from')")
    python, *flags, _chat = chat_command()
    run = subprocess.run(
        [python, *flags, "--version"],
        cwd=tmp_path,
        env=own_environment({"PATH": "/usr/bin:/bin"}),
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith("minicpm5-mac "), run.stderr


def test_the_script_cleans_the_environment_and_survives_any_path(monkeypatch: pytest.MonkeyPatch):
    for name, value in BUNDLE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "executable", "/Apps of Ada's/$(touch x)/python")
    script = command_script()
    assert subprocess.run(["/bin/sh", "-n"], input=script.encode(), check=False).returncode == 0
    # What the shell makes of the line that starts us, with `env` in our stead.
    shown = script.replace("/usr/bin/env", "printf '%s\\n'", 1).replace("read -r _", ":")
    run = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert f"PYTHONHOME={BUNDLE['PYTHONHOME']}" in lines
    assert "/Apps of Ada's/$(touch x)/python" in lines
    assert not any(line.startswith(("RESOURCEPATH", "ARGVZERO")) for line in lines)


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
