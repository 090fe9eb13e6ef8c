"""The command `minicpm5-mac`: its parser, and the way from a command's name to its module.

A command is a module of this package with `add_parser(commands)`, which declares arguments and
sets `run` by `set_defaults`. `run(arguments)` returns the exit code and imports what it needs
inside: `--help`, `--version` and shell completion stay fast.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from minicpm5_mac import __version__
from minicpm5_mac.cli.standard_streams import OutputFailure, guard_streams, silence_output
from minicpm5_mac.failure import Failure

COMMANDS = (
    "chat",
    "web",
    "agent",
    "models",
    "parse",
    "conversations",
    "config",
    "sandbox",
    "doctor",
    "bench",
    "completion",
)

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
    guard_streams()
    try:
        try:
            arguments = _parsed(argv)
            return arguments.run(arguments)
        finally:
            sys.stdout.flush()
    except OutputFailure as failure:
        silence_output()
        print(f"minicpm5-mac: {failure}", file=sys.stderr)
        return failure.exit_code
    except Failure as failure:
        print(f"minicpm5-mac: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nobody listens.
        silence_output()
        return 0
    except Exception as error:
        print(f"minicpm5-mac: {_recorded(error)}", file=sys.stderr)
        return 1


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """As parse_args, but a mistake shows the usage of the command that it was made in."""
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        _innermost(parser, arguments).error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def _innermost(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace
) -> argparse.ArgumentParser:
    for action in parser._actions:  # argparse has no public way to look at a parser
        if isinstance(action, argparse._SubParsersAction):
            return _innermost(action.choices[getattr(arguments, action.dest)], arguments)
    return parser


def _recorded(error: Exception) -> str:
    """Put a fault of ours into a log file; words for the user, who should not read a traceback."""
    import traceback

    from minicpm5_mac import locations

    what = f"something went wrong that should not have: {type(error).__name__}: {error}"
    try:
        locations.log_dir().mkdir(parents=True, exist_ok=True)
        path = locations.log_dir() / "faults.log"
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{__version__} {' '.join(sys.argv)}\n{traceback.format_exc()}\n")
    except OSError:
        return what
    return f"{what}\nWhat happened is in {path}; please send it with a report."
