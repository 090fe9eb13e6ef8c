"""`minicpm5-mac agent`: the model with tools in a folder, for one task or a few in a row."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from minicpm5_mac.cli.chat import app_options, given_prompts
from minicpm5_mac.cli.model_arguments import (
    add_model_arguments,
    add_sampling_arguments,
    engine_options,
    given_settings,
    session_settings,
)
from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from minicpm5_mac.agent.toolbox import Toolbox
    from minicpm5_mac.engine.interface import Engine
    from minicpm5_mac.mcp_servers.server import McpServer

DESCRIPTION = """\
Gives the model tools in a folder: it reads, searches, edits and runs commands there, inside a
sandbox without network. Without a task, the terminal app; with -p, or text on standard input, one
task. Reading goes by itself; edits and commands are asked for on the terminal,
with the whole diff or command. The answer is on standard output, everything else on standard
error. Text on standard input is appended to the task."""

EPILOG = """\
without a terminal and without --approve, what would be asked for is refused. --approve
all-in-sandbox does not cover MCP servers with an address, whose calls leave the sandbox: for one,
set `unattended = true` in your configuration.

exit codes: 0 answered, 1 failed, 2 wrong usage, 3 no model, 4 ended by a limit (replies, time,
tokens, the same call three times), 130 interrupted. The conversation is kept: `agent --continue
-p …` goes on with it, also after a crash; `minicpm5-mac conversations` lists it."""

_APPROVE = ("read", "edits", "all-in-sandbox")


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "agent",
        help="give the model tools in a folder",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="DIR", help="the workspace (default: this folder)"
    )
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    task = parser.add_argument_group("task")
    task.add_argument("-p", "--prompt", action="append", metavar="TEXT", help="do this, and exit")
    task.add_argument("--json", action="store_true", help="one event a line, as JSON")
    task.add_argument(
        "--show-reasoning", action="store_true", help="the reasoning, on standard error"
    )
    which = task.add_mutually_exclusive_group()
    which.add_argument(
        "--continue", "-c", dest="latest", action="store_true", help="go on with the latest"
    )
    which.add_argument("--resume", "-r", metavar="ID", help="go on with this conversation")
    parser.add_argument(
        "--linear",
        action="store_true",
        help="plain lines without boxes or redraw, for screen readers",
    )
    tools = parser.add_argument_group("tools")
    tools.add_argument("--workspace", type=Path, metavar="DIR", help="the same as DIR")
    tools.add_argument(
        "--mode",
        choices=("ask", "accept-edits", "read-only"),
        default="ask",
        help="what runs unasked: reading (ask), edits too, or nothing else at all",
    )
    tools.add_argument(
        "--approve",
        choices=_APPROVE,
        help="ask nobody: allow reading only, edits too, or commands as well; refuse the rest",
    )
    tools.add_argument(
        "--read", type=Path, action="append", default=[], metavar="DIR", help="also readable"
    )
    tools.add_argument(
        "--write", type=Path, action="append", default=[], metavar="DIR", help="also writable"
    )
    tools.add_argument("--tools", type=Path, metavar="DIR", help="your own tools, a .py file each")
    tools.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="NAME",
        help="use this MCP server of your configuration, or `all` of them (default: none)",
    )
    tools.add_argument(
        "--steps", type=int, default=None, metavar="N", help="most replies a turn (default 30)"
    )
    tools.add_argument(
        "--without-sandbox",
        action="store_true",
        help="for this run, tools may read and change all that you can",
    )


def run(arguments: argparse.Namespace) -> int:
    """The app; or the tasks, with approvals on the terminal where there is one."""
    from minicpm5_mac.configuration.reading import load_configuration

    configuration = load_configuration()
    prompts = given_prompts(arguments)
    if prompts is None and (arguments.json or arguments.show_reasoning or arguments.approve):
        raise Failure(
            "--json, --show-reasoning and --approve need a task.", 'Give one with -p "…".', 2
        )

    def make_engine(model: str) -> Engine:
        from minicpm5_mac.engine.process import EngineProcess

        return EngineProcess(engine_options(model, arguments, configuration))

    settings = session_settings(arguments, configuration)
    if prompts is None:
        from minicpm5_mac.app.run import run_app
        from minicpm5_mac.launcher.single_instance import by_hand_here

        with by_hand_here() as notice:
            options = app_options(arguments, configuration, settings, make_engine)
            toolbox = make_toolbox(arguments, configuration.mcp, in_app=True)
            return run_app(dataclasses.replace(options, toolbox=toolbox, notice=notice))

    from minicpm5_mac.cli.one_shot import OneShot

    return OneShot(
        settings=settings,
        make_engine=make_engine,
        given=given_settings(arguments),
        json=arguments.json,
        show_reasoning=arguments.show_reasoning,
        latest=arguments.latest,
        resume=arguments.resume,
        toolbox=make_toolbox(arguments, configuration.mcp),
    ).run(prompts)


def make_toolbox(
    arguments: argparse.Namespace,
    configured: Mapping[str, McpServer],
    *,
    in_app: bool = False,
) -> Toolbox:
    """The tools that the flags ask for. Raises Failure for what cannot be granted.

    configured: the MCP servers of the user's own configuration, of which `--mcp` names some.
    in_app: the app asks for approval, whatever the standard streams are.
    """
    from minicpm5_mac.agent.approval import Mode
    from minicpm5_mac.agent.toolbox import Toolbox, TurnLimits
    from minicpm5_mac.cli.tool_lines import terminal
    from minicpm5_mac.mcp_servers.server import chosen_servers
    from minicpm5_mac.sandbox.policy import Policy

    if arguments.folder is not None and arguments.workspace is not None:
        raise Failure("The workspace is given twice.", "Leave out DIR or --workspace.", 2)
    if arguments.without_sandbox and arguments.approve == "all-in-sandbox":
        raise Failure(
            "--approve all-in-sandbox needs the sandbox.", "Leave out --without-sandbox.", 2
        )
    if arguments.steps is not None and arguments.steps < 1:
        raise Failure("--steps must be at least 1.", "Leave it out for 30.", 2)
    mode: Mode = arguments.mode
    commands: bool | None = None
    if arguments.approve is not None:
        commands = arguments.approve == "all-in-sandbox"
        if arguments.approve == "edits" and mode == "ask":
            mode = "accept-edits"
    elif not in_app and (arguments.json or terminal() is None):
        commands = False
    limits = TurnLimits() if arguments.steps is None else TurnLimits(steps=arguments.steps)
    toolbox = Toolbox(
        Policy(
            arguments.folder or arguments.workspace or Path(),
            read=tuple(arguments.read),
            write=tuple(arguments.write),
        ),
        mode=mode,
        commands=commands,
        own=arguments.tools,
        confined=not arguments.without_sandbox,
        limits=limits,
        servers=chosen_servers(configured, arguments.mcp),
    )
    if commands is None and not in_app:
        print(f"minicpm5-mac: tools in {toolbox.policy.workspace}, mode {mode}", file=sys.stderr)
    return toolbox
