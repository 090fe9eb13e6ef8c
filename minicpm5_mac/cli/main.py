"""The command `minicpm5-mac`: its parser, and the way from a command's name to its module.

A command is a module of this package with `add_parser(commands)`, which declares arguments and
sets `run` by `set_defaults`. `run(arguments)` returns the exit code and imports what it needs
inside: `--help`, `--version` and shell completion stay fast.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from minicpm5_mac import __version__
from minicpm5_mac.failure import Failure

COMMANDS = ("chat", "models", "parse", "conversations", "bench", "completion")

EXIT_CODES = """\
exit codes:
  0  done             1  failed; the message says why
  2  wrong usage      3  the model could not be had (not found, no network, does not fit)
  4  the reply was cut off by a limit     130  interrupted"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line. Imports command modules only, never what they run."""
    parser = argparse.ArgumentParser(
        prog="minicpm5-mac",
        description="MiniCPM5 on this machine: private, and offline once the weights are there.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"minicpm5-mac {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"minicpm5_mac.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Every failure that is not a fault of ours becomes one clear message."""
    arguments = build_parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except Failure as failure:
        print(f"minicpm5-mac: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nobody listens.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
