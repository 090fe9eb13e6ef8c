"""`minicpm5-mac completion SHELL`: a completion script, made from the command line's own parser."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")

_EPILOG = """\
bash:  echo 'source <(minicpm5-mac completion bash)' >> ~/.bashrc
zsh:   echo 'source <(minicpm5-mac completion zsh)' >> ~/.zshrc     (after compinit)
fish:  minicpm5-mac completion fish > ~/.config/fish/completions/minicpm5-mac.fish"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="Print a completion script for a shell. To install it:",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from minicpm5_mac.cli.command_tree import command_tree
    from minicpm5_mac.cli.completion_scripts import bash_script, fish_script, zsh_script
    from minicpm5_mac.cli.main import build_parser

    scripts = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
    sys.stdout.write(scripts[arguments.shell](command_tree(build_parser())))
    return 0
