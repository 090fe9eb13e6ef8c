"""What MiniCPM5.app runs: `python -m minicpm5_mac.launcher.launch [--terminal]`.

A window of its own where that works, else the user's terminal. Whatever fails is told in words.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.launcher.alert import show_alert
from minicpm5_mac.launcher.command_file import open_in_terminal
from minicpm5_mac.launcher.own_python import chat_command, own_environment
from minicpm5_mac.launcher.single_instance import (
    SingleInstance,
    bring_to_front,
    open_here,
)

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the chat; returns when it is closed, or when a terminal has taken over."""
    arguments, unknown = _parser().parse_known_args(argv)
    try:
        from minicpm5_mac.web.log_file import log_to_file, redirect_output

        redirect_output(log_to_file())
        if unknown:  # older systems add arguments of their own, such as -psn_0_12345
            log.info("not for us: %s", unknown)
        os.chdir(Path.home())  # a bundle starts in /
        open_chat(in_terminal=arguments.terminal)
    except Failure as failure:
        show_alert("MiniCPM5 cannot be opened", f"{failure}\n\n{_where_logs_are()}")
        return failure.exit_code
    except Exception as error:
        log.exception("not opened")
        show_alert(
            "MiniCPM5 cannot be opened", f"{type(error).__name__}: {error}\n\n{_where_logs_are()}"
        )
        return 1
    return 0


def open_chat(*, in_terminal: bool) -> None:
    """Open it where there is none; else show the one there is. Raises Failure, OSError."""
    if in_terminal:
        open_in_terminal()  # which takes the lock itself, or says who has it
        return
    here = open_here("window")
    if not isinstance(here, SingleInstance):
        if here is None or not bring_to_front(here):
            open_in_terminal()
        return
    from minicpm5_mac.web.window import NoWindow, run_window

    try:
        run_window(chat_command(), own_environment(), here.chat.key, here.listen_at)
    except NoWindow as reason:
        log.warning("no window: %s", reason)
        here.release()
        open_in_terminal()
    finally:
        here.release()


def _where_logs_are() -> str:
    return f"The log files are in {locations.log_dir()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="MiniCPM5", description=__doc__)
    parser.add_argument("--terminal", action="store_true", help="in the user's terminal")
    return parser


if __name__ == "__main__":
    sys.exit(main())
