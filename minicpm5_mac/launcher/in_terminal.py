"""`python -m minicpm5_mac.launcher.in_terminal`: the chat, in the terminal of a command file.

Here and not in the app bundle's process, since only this one lives as long as the chat does.
"""

from __future__ import annotations

import contextlib
import os
import sys

from minicpm5_mac.launcher.own_python import chat_command
from minicpm5_mac.launcher.single_instance import OpenChat, SingleInstance, open_here


def main() -> int:
    """Become the chat, or say where it is already open."""
    terminal = ""
    with contextlib.suppress(OSError):
        terminal = os.ttyname(0)
    try:
        here = open_here("terminal", terminal)
    except OSError as error:
        print(f"MiniCPM5 cannot write its files: {error}", file=sys.stderr)
        return 1
    if not isinstance(here, SingleInstance):
        print(already_open(here))
        if sys.stdin.isatty():
            with contextlib.suppress(EOFError, KeyboardInterrupt):
                input("Return closes this: ")
        return 0
    here.pass_on()
    command = chat_command()
    return os.execv(command[0], command)


def already_open(chat: OpenChat | None) -> str:
    """Where the model is in memory, for who starts it a second time."""
    where = "elsewhere" if chat is None else str(chat)
    return f"MiniCPM5 is already open {where}.\nThe model is in memory there, once is enough."


if __name__ == "__main__":
    sys.exit(main())
