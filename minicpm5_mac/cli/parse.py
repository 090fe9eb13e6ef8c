"""`minicpm5-mac parse`: how a reply is read, and why a call in it does not run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from minicpm5_mac.reply.reading import ReplyReading

_SHAPE = (
    "TOOLS.json is a list of tools, each with a name and parameters, as in "
    '[{"type": "function", "function": {"name": "…", "parameters": {…}}}].'
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "parse",
        help="show how a model's reply is read: reasoning, answer, tool calls",
        description="Read a reply from standard input and print one JSON object with reasoning, "
        "content, tool_calls, rejected (each with the reason why it must not run) and finish "
        "(complete or truncated).",
    )
    parser.add_argument(
        "--tools", type=Path, metavar="TOOLS.json", help="the tools that the model was offered"
    )
    parser.add_argument(
        "--thinking",
        choices=("open", "closed"),
        default="closed",
        help="whether the prompt ended inside of a <think> block (default: closed)",
    )
    parser.add_argument(
        "--chunk",
        type=_positive,
        metavar="N",
        help="read N characters at a time, as if they streamed; the result is the same",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read standard input to its end and print the reading of it."""
    from minicpm5_mac.reply.reading import read_reply

    tools = _load_tools(arguments.tools) if arguments.tools else []
    reply = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    reading = read_reply(
        reply, tools, thinking_open=arguments.thinking == "open", chunk=arguments.chunk
    )
    text = json.dumps(_as_json(reading), ensure_ascii=False, indent=1)
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _load_tools(path: Path) -> list[dict[str, Any]]:
    try:
        tools = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Failure(
            f"cannot read {path}: {error.strerror or error}", "Check --tools.", 2
        ) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is not UTF-8 text.", _SHAPE, 2) from error
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path} is not JSON: {error}", _SHAPE, 2) from error
    if not isinstance(tools, list):
        raise Failure(f"{path} holds no list of tools.", _SHAPE, 2)
    for i, tool in enumerate(tools, 1):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Failure(f"{path}: tool {i} has no name.", _SHAPE, 2)
        if not isinstance(function.get("parameters") or {}, dict):
            raise Failure(
                f"{path}: the parameters of tool {i} are no JSON Schema object.", _SHAPE, 2
            )
    return tools


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of characters from 1 up")
    return int(text)


def _as_json(reading: ReplyReading) -> dict[str, Any]:
    rejected = [
        {
            "reason": call.reason,
            "name": call.name,
            **({"parameter": call.parameter} if call.parameter else {}),
            **({"detail": call.detail} if call.detail else {}),
        }
        for call in reading.rejected
    ]
    return {
        "reasoning": reading.reasoning,
        "content": reading.content,
        "tool_calls": [
            {"name": call.name, "arguments": call.arguments} for call in reading.tool_calls
        ],
        "rejected": rejected,
        "finish": reading.finish,
    }
