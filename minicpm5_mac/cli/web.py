"""`minicpm5-mac web`: the terminal app in a page of the user's browser, on this machine only."""

from __future__ import annotations

import argparse
import importlib.util

from minicpm5_mac.cli.chat import add_conversation_arguments
from minicpm5_mac.cli.model_arguments import add_model_arguments, add_sampling_arguments
from minicpm5_mac.failure import Failure

DESCRIPTION = """\
The same app as `chat`, in a page at 127.0.0.1 that only the link printed here opens. Reloading the
page loses nothing; Ctrl+C here, or leaving the app, ends everything."""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "web",
        parents=[_chat_parser()],
        help="the app in your browser, on this machine only",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--no-open", action="store_true", help="print the link, open no browser")
    parser.add_argument(
        "--second", action="store_true", help="even where the model is loaded already"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve the app until it ends."""
    if importlib.util.find_spec("aiohttp") is None:
        raise Failure("The page needs the package aiohttp.", "Install it: pip install aiohttp")
    from minicpm5_mac.launcher.in_terminal import already_open
    from minicpm5_mac.launcher.own_python import chat_command, own_environment
    from minicpm5_mac.launcher.single_instance import SingleInstance, open_here
    from minicpm5_mac.web.in_browser import run_in_browser

    here = open_here("browser")
    if not isinstance(here, SingleInstance) and not arguments.second:
        raise Failure(already_open(here), "--second opens it here as well.")
    try:
        return run_in_browser(
            chat_command(*chat_flags(arguments)),
            own_environment(),
            open_browser=not arguments.no_open,
        )
    finally:
        if isinstance(here, SingleInstance):
            here.release()


def chat_flags(arguments: argparse.Namespace) -> list[str]:
    """The flags for `chat` that were given here, as words."""
    words: list[str] = []
    for action in _chat_parser()._actions:
        value = getattr(arguments, action.dest, action.default)
        if value == action.default:
            continue
        flag = action.option_strings[0]
        words.append(flag if action.nargs == 0 else f"{flag}={_word(action.dest, value)}")
    return words


def _word(name: str, value: object) -> str:
    if name == "thinking":  # see model_arguments.thinking
        return {None: "on", 0: "off"}.get(value, str(value))  # type: ignore[call-overload]
    return str(value)


def _chat_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    add_conversation_arguments(parser)
    return parser
