"""kill -9 of the app during a command: a second later nothing of it lives, nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

APP = """
import sys
from pathlib import Path
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.process import start
from minicpm5_mac.sandbox.worker_call import shell_command
from minicpm5_mac.sandbox.wrapping import unconfined

wrapper = unconfined if sys.argv[2] == "unconfined" else None
running = start(
    Policy(Path(sys.argv[1])),
    shell_command(sys.argv[3]),
    wrapper=wrapper,
)
running.wait()
"""


COMMAND = "sleep {0} & setsid sleep {0} & touch $TMPDIR/t; echo $TMPDIR > tmp; wait"


@pytest.mark.parametrize("wrapper", ["production", "unconfined"])
def test_nothing_lives_and_nothing_is_left(workspace, sandbox, alive, wrapper):
    seconds = f"{random.uniform(300, 400):.6f}"  # also the mark to find the two sleepers by
    arguments = [str(workspace), wrapper, COMMAND.format(seconds)]
    with subprocess.Popen([sys.executable, "-c", APP, *arguments]) as app:
        said = workspace / "tmp"
        sleepers = f"sleep\0{seconds}"
        while len(alive(sleepers)) < 2 or not (said.exists() and said.read_text()):
            assert app.poll() is None
            time.sleep(0.05)
        os.kill(app.pid, signal.SIGKILL)
    run_folder = Path(said.read_text().strip())
    wait_until(lambda: not alive(sleepers))
    assert not alive(sleepers)
    # The guard: it removes folder and placeholders, and ends.
    wait_until(lambda: not run_folder.exists() and os.listdir(workspace) == ["tmp"])
    assert not run_folder.exists()
    assert os.listdir(workspace) == ["tmp"]


def test_an_app_that_ends_leaves_no_guard(workspace, sandbox, app_home):
    arguments = [str(workspace), "production", "true"]
    subprocess.run([sys.executable, "-c", APP, *arguments], check=True)
    wait_until(lambda: not guards(app_home))
    assert not guards(app_home)


def guards(home: Path) -> list[str]:
    """Guards whose app kept its files below `home`: its folders are in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            command = Path("/proc", name, "cmdline").read_bytes()
            environment = Path("/proc", name, "environ").read_bytes()
            if b"sandbox.guard" in command and os.fsencode(home) in environment:
                found.append(name)
    return found


def wait_until(holds) -> None:
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
