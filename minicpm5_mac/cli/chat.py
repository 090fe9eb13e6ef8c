"""`minicpm5-mac chat`: the terminal app, or with a prompt one reply on standard output."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import TYPE_CHECKING

from minicpm5_mac.cli.model_arguments import (
    add_model_arguments,
    add_sampling_arguments,
    engine_options,
    given_settings,
    session_settings,
)
from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from minicpm5_mac.agent.settings import SessionSettings
    from minicpm5_mac.app.options import AppOptions
    from minicpm5_mac.configuration.configuration import Configuration
    from minicpm5_mac.conversations.store import ConversationStore
    from minicpm5_mac.engine.interface import Engine

DESCRIPTION = """\
Without a prompt, the terminal app. With -p, or text on standard input, one reply on standard
output: the answer alone, everything else on standard error. With both, the input is appended to
the prompt. Several -p are the turns of one conversation. With --continue or --resume they are kept
in the stored conversation; without, nothing is kept."""


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "chat",
        help="talk to the model, in the terminal app or once",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    one = parser.add_argument_group("one reply")
    one.add_argument("-p", "--prompt", action="append", metavar="TEXT", help="say this, and exit")
    one.add_argument("--json", action="store_true", help="one event a line, as JSON")
    one.add_argument(
        "--show-reasoning", action="store_true", help="the reasoning, on standard error"
    )
    add_conversation_arguments(parser)
    parser.add_argument(
        "--linear",
        action="store_true",
        help="plain lines without boxes or redraw, for screen readers",
    )


def add_conversation_arguments(parser: argparse.ArgumentParser) -> None:
    """--continue, --resume."""
    stored = parser.add_argument_group("stored conversations")
    which = stored.add_mutually_exclusive_group()
    which.add_argument(
        "--continue",
        "-c",
        dest="latest",
        action="store_true",
        help="go on with the latest conversation",
    )
    which.add_argument(
        "--resume", "-r", metavar="ID", help="go on with this one (see `conversations list`)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Choose between the app and one reply."""
    from minicpm5_mac.configuration.reading import load_configuration

    configuration = load_configuration()
    prompts = given_prompts(arguments)
    if prompts is None and (arguments.json or arguments.show_reasoning):
        raise Failure("--json and --show-reasoning need a prompt.", "Give one with -p.", 2)

    def make_engine(model: str) -> Engine:
        from minicpm5_mac.engine.process import EngineProcess

        return EngineProcess(engine_options(model, arguments, configuration))

    settings = session_settings(arguments, configuration)
    if prompts is not None:
        from minicpm5_mac.cli.one_shot import OneShot

        return OneShot(
            settings=settings,
            make_engine=make_engine,
            given=given_settings(arguments),
            json=arguments.json,
            show_reasoning=arguments.show_reasoning,
            latest=arguments.latest,
            resume=arguments.resume,
        ).run(prompts)

    from minicpm5_mac.app.run import run_app
    from minicpm5_mac.launcher.single_instance import by_hand_here

    with by_hand_here() as notice:
        options = app_options(arguments, configuration, settings, make_engine)
        return run_app(dataclasses.replace(options, notice=notice))


def app_options(
    arguments: argparse.Namespace,
    configuration: Configuration,
    settings: SessionSettings,
    make_engine: Callable[[str], Engine],
) -> AppOptions:
    """What the app is started with, by the flags and the configuration."""
    from minicpm5_mac.app.options import AppOptions

    return AppOptions(
        settings=settings,
        make_engine=make_engine,
        given=given_settings(arguments),
        conversation=_conversation(arguments),
        theme=configuration.app.theme,
        presets=configuration.prompts,
        bell=configuration.app.bell,
        copy_on_select=configuration.app.copy_on_select,
        linear=arguments.linear or configuration.app.linear or _cannot_draw(),
    )


def _cannot_draw() -> bool:
    """The terminal is none that the app can draw on; then that is said."""
    kind = os.environ.get("TERM", "")
    if kind not in ("", "dumb"):
        return False
    print(
        f"minicpm5-mac: this terminal (TERM={kind}) cannot show the app, so here are plain lines "
        "(--linear).",
        file=sys.stderr,
    )
    return True


def given_prompts(arguments: argparse.Namespace) -> list[str] | None:
    """The turns to say, or None for the app. Raises Failure where there is neither."""
    prompts: list[str] = list(arguments.prompt or [])
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    text = piped.decode("utf-8", errors="replace").strip() if isinstance(piped, bytes) else ""
    if prompts and text:
        prompts[0] = f"{prompts[0]}\n\n{text}"
    elif text:
        prompts = [text]
    if prompts:
        if not all(prompt.strip() for prompt in prompts):
            raise Failure("The prompt is empty.", "Write something after -p.", 2)
        return prompts
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure(
            "There is no terminal for the app, and no prompt.",
            'Give a prompt with -p "…", or text on standard input.',
            2,
        )
    return None


def find_conversation(store: ConversationStore, latest: bool, resume: str | None) -> str | None:
    """The id of the conversation to go on with, None for a new one."""
    if resume is not None:
        return store.find(resume).id
    if not latest:
        return None
    newest = store.latest()
    if newest is None:
        raise Failure("There is no conversation to continue yet.", "Leave out --continue.")
    return newest.id


def _conversation(arguments: argparse.Namespace) -> str | None:
    if not (arguments.latest or arguments.resume):
        return None
    from minicpm5_mac.conversations.store import ConversationStore

    with ConversationStore() as store:
        return find_conversation(store, arguments.latest, arguments.resume)
