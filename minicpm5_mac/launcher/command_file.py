"""Opening the chat in the user's terminal by a generated command file.

`open` of a .command file starts it in the terminal that the user has set for such files, and asks
for no permission, which a script that steers Terminal would.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.launcher.own_python import own_environment

OPEN = "/usr/bin/open"
OPEN_SECONDS = 20.0

_SCRIPT = """\
#!/bin/sh
# Written by MiniCPM5 each time it opens in a terminal; nothing is lost by deleting it.
/usr/bin/env {variables} {python} -P -m minicpm5_mac.launcher.in_terminal
status=$?
if [ "$status" -ne 0 ]; then
  printf '\\nMiniCPM5 ended with status %s. Its log files are in %s\\nReturn closes this: ' \\
    "$status" {logs}
  read -r _
fi
exit "$status"
"""


def command_script() -> str:
    """The script: in the terminal's environment, with what only ours says."""
    needed = {
        name: value
        for name, value in own_environment().items()
        if name in ("PYTHONPATH", locations.HOME_VARIABLE)
    }
    return _SCRIPT.format(
        variables=" ".join(shlex.quote(f"{name}={value}") for name, value in needed.items()),
        python=shlex.quote(sys.executable),
        logs=shlex.quote(str(locations.log_dir())),
    )


def write_command_file() -> Path:
    """Write the script, executable, for this user alone. Raises OSError."""
    path = locations.cache_dir() / "MiniCPM5.command"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(command_script())
    return path


def open_in_terminal() -> None:
    """Open the chat in a terminal window. Raises Failure where that cannot be."""
    if sys.platform != "darwin":
        raise Failure(
            "Only macOS opens a terminal by a command file.", "Run `minicpm5-mac chat` in one."
        )
    path = write_command_file()
    try:
        opened = subprocess.run(
            (OPEN, str(path)), capture_output=True, timeout=OPEN_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"A terminal cannot be opened: {error}") from None
    if opened.returncode != 0:
        words = opened.stderr.decode(errors="replace").strip()
        raise Failure(f"A terminal cannot be opened: {words}", f"Open {path} by hand.")
