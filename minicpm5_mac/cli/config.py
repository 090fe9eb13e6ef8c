"""`minicpm5-mac config`: where the configuration file is, what holds, whether it is right."""

from __future__ import annotations

import argparse
import sys


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its own commands."""
    parser = commands.add_parser("config", help="show and check the configuration file")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("path", help="print where the file is read from").set_defaults(run=_path)
    actions.add_parser(
        "show", help="print all keys with their meaning and what holds, as a complete file"
    ).set_defaults(run=_show)
    actions.add_parser("check", help="name mistakes by line").set_defaults(run=_check)


def _path(_: argparse.Namespace) -> int:
    from minicpm5_mac import locations

    print(locations.config_file())
    return 0


def _show(_: argparse.Namespace) -> int:
    from minicpm5_mac import locations
    from minicpm5_mac.configuration.reading import read_configuration
    from minicpm5_mac.configuration.table import shown_as_toml

    path = locations.config_file()
    configuration, problems = read_configuration(path)
    sys.stdout.write(shown_as_toml(configuration))
    for problem in problems:
        print(f"minicpm5-mac: {path}: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _check(_: argparse.Namespace) -> int:
    from minicpm5_mac import locations
    from minicpm5_mac.configuration.reading import load_configuration

    path = locations.config_file()
    load_configuration(path)
    print(f"{path}: no mistakes" if path.exists() else f"{path}: not there; defaults hold")
    return 0
