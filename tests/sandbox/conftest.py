"""A sandbox of one's own for every test: its caches, a workspace with a world around."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from minicpm5_mac.sandbox.policy import Limits, Policy
from minicpm5_mac.sandbox.process import Ended, run
from minicpm5_mac.sandbox.worker_call import shell_command


@pytest.fixture(autouse=True)
def app_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program keeps its own files during a test: outside of every workspace."""
    home = tmp_path_factory.mktemp("app-home")
    monkeypatch.setenv("MINICPM5_MAC_HOME", str(home))
    return home


@pytest.fixture
def sandbox() -> None:
    """The test starts the Linux sandbox for real."""
    if sys.platform != "linux":
        pytest.skip("the Linux back end; on a Mac `minicpm5-mac doctor` is the test")
    if shutil.which("bwrap") is None:
        pytest.skip("needs bubblewrap: sudo apt install bubblewrap")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


Shell = Callable[..., Ended]


@pytest.fixture
def shell(workspace: Path, sandbox: None) -> Shell:
    """Run a shell command in the workspace; keywords are limits."""

    def run_shell(command: str, **limits) -> Ended:
        limits.setdefault("wall_seconds", 30.0)
        return run(Policy(workspace, limits=Limits(**limits)), shell_command(command))

    return run_shell


def processes_with(marker: str) -> list[int]:
    """Processes on the host whose command line holds `marker`, this one aside."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(name))
    return found


@pytest.fixture
def alive() -> Callable[[str], list[int]]:
    return processes_with
