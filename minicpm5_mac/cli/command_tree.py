"""The command line as data: every command with its options and choices, read from argparse."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

_FILE_WORDS = ("FILE", "DIR", "PATH")


@dataclass(frozen=True)
class Option:
    """names: as typed, dashes included. takes_value: another word follows. choices: what it may be.

    files: the word that follows names a file or folder.
    """

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]
    files: bool


@dataclass(frozen=True)
class Command:
    """path: the words that lead here, the program's name left out. choices: of its argument."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    files: bool


def command_tree(parser: argparse.ArgumentParser) -> tuple[Command, ...]:
    """Every command, the program itself (an empty path) first."""
    return tuple(_walk(parser, (), ""))


def children(tree: tuple[Command, ...], parent: Command) -> tuple[Command, ...]:
    """The commands one word below another."""
    return tuple(c for c in tree if c.path and c.path[:-1] == parent.path)


def _walk(parser: argparse.ArgumentParser, path: tuple[str, ...], text: str) -> list[Command]:
    options: list[Option] = []
    choices: tuple[str, ...] = ()
    files = False
    below: list[Command] = []
    for action in parser._actions:  # argparse has no public way to look at a parser
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                below += _walk(child, (*path, name), helps.get(name, ""))
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(
                Option(
                    tuple(action.option_strings),
                    _plain(action.help),
                    action.nargs != 0,
                    _words(action.choices),
                    _names_files(action),
                )
            )
        else:
            choices = choices or _words(action.choices)
            files = files or _names_files(action)
    return [Command(path, _plain(text), tuple(options), choices, files), *below]


def _words(choices: object) -> tuple[str, ...]:
    return tuple(str(choice) for choice in choices) if choices else ()  # type: ignore[attr-defined]


def _names_files(action: argparse.Action) -> bool:
    shown = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
    return any(word in shown.upper() for word in _FILE_WORDS)


def _plain(text: str | None) -> str:
    """Help as one line, its %% undone; argparse fills in other formats only when it prints."""
    return " ".join((text or "").replace("%%", "%").split())
