"""`minicpm5-mac sandbox run`, `profile` and `cost`: the tools' sandbox, for any command.

On a Mac this is how its owner can try what a tool would be allowed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minicpm5_mac.sandbox.policy import Policy

RUN_EPILOG = """\
The command reads system folders, the granted ones and the workspace, writes the workspace (not
.git and other configuration) and a temporary folder, and reaches no network.

exit status: that of the command; 124 at the time limit, 137 when another limit ended it."""


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("sandbox", help="run a command the way tools run")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    run = actions.add_parser(
        "run",
        help="run a command in the sandbox",
        epilog=RUN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_policy_arguments(run)
    run.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds (default 60, at most 600)"
    )
    run.add_argument("argv", nargs="+", metavar="CMD", help="the command, after `--`")
    run.set_defaults(run=run_command)

    cost = actions.add_parser(
        "cost", help="measure a sandboxed read of a small file against one in this process"
    )
    cost.add_argument("--calls", type=int, default=50, metavar="N", help="default 50")
    cost.set_defaults(run=print_cost)

    profile = actions.add_parser("profile", help="print the macOS profile of a policy")
    _add_policy_arguments(profile)
    profile.set_defaults(run=print_profile)


def run_command(arguments: argparse.Namespace) -> int:
    """Run the command, pass its output on, return its exit status."""
    from minicpm5_mac.sandbox.output import plain_text
    from minicpm5_mac.sandbox.policy import Limits
    from minicpm5_mac.sandbox.process import Reason, run

    policy = _policy(arguments, Limits(wall_seconds=arguments.timeout))
    targets = {"stdout": sys.stdout, "stderr": sys.stderr}
    decoders = {name: _decoder() for name in targets}

    def show(stream: str, chunk: bytes) -> None:
        target = targets[stream]
        if target.isatty():
            # What a program prints could write the clipboard or rename the window.
            target.write(plain_text(decoders[stream].decode(chunk)))
            target.flush()
        else:
            target.buffer.write(chunk)
            target.buffer.flush()

    ended = run(policy, arguments.argv, on_output=show, separate_stderr=True)
    if ended.reason is not Reason.EXIT:
        print(f"minicpm5-mac: ended after {ended.seconds:.1f} s: {ended.reason}", file=sys.stderr)
    return ended.status


def print_cost(arguments: argparse.Namespace) -> int:
    """Print medians and minima, in milliseconds, of the same read with and without sandbox."""
    import statistics
    import tempfile

    from minicpm5_mac.failure import Failure
    from minicpm5_mac.sandbox.read_cost import measure

    if arguments.calls < 1:
        raise Failure("--calls must be at least 1", "Leave it out for 50.", exit_code=2)
    with tempfile.TemporaryDirectory(prefix="minicpm5-cost-") as folder:
        costs = measure(Path(folder), arguments.calls)
    for name, seconds in costs.items():
        median, least = statistics.median(seconds) * 1e3, min(seconds) * 1e3
        print(f"{name:12} median {median:8.3f} ms   least {least:8.3f} ms   n {len(seconds)}")
    return 0


def print_profile(arguments: argparse.Namespace) -> int:
    """Print the profile text that `sandbox-exec -p` would get."""
    from minicpm5_mac.sandbox.macos import EXAMPLE_RUN_FOLDER, profile

    print(profile(_policy(arguments), EXAMPLE_RUN_FOLDER), end="")
    return 0


def _add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="default: this folder"
    )
    parser.add_argument(
        "--read", type=Path, action="append", default=[], metavar="DIR", help="also readable"
    )
    parser.add_argument(
        "--write", type=Path, action="append", default=[], metavar="DIR", help="also writable"
    )


def _policy(arguments: argparse.Namespace, limits=None) -> Policy:
    from minicpm5_mac.sandbox.policy import Limits, Policy

    return Policy(
        arguments.workspace,
        read=tuple(arguments.read),
        write=tuple(arguments.write),
        limits=limits or Limits(),
    )


def _decoder():
    import codecs

    return codecs.getincrementaldecoder("utf-8")(errors="replace")
