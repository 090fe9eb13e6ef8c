"""A user's own tools: one Python file each, with SCHEMA and run(**arguments), in a folder.

    SCHEMA = {"name": "add", "description": "Add two numbers.", "parameters": {…JSON schema…}}

    def run(a, b):
        return a + b

Their code runs in the sandbox only, standard library only, their folder readable. `run` returns
text, or what JSON can hold; what it raises becomes an error for the model.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.worker_call import WorkerCall, run_worker
from minicpm5_mac.sandbox.wrapping import Wrapper
from minicpm5_mac.tools.tool import Tool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_DESCRIBE = Path(__file__).with_name("describe.py")
DESCRIBE_SECONDS = 10.0


def own_tools(
    folder: Path, policy: Policy, taken: Collection[str], wrapper: Wrapper | None = None
) -> tuple[Tool, ...]:
    """The tools of a folder that `policy` lets a worker read. taken: names in use already.

    Raises Failure, naming the file, where one cannot be used.
    """
    if not folder.is_dir():
        raise Failure(f"{folder} is not a folder", "Name a folder with tools in it.", 2)
    quick = replace(policy, limits=replace(policy.limits, wall_seconds=DESCRIBE_SECONDS))
    found: list[Tool] = []
    for file in sorted(folder.resolve().glob("*.py")):
        if file.name.startswith("_"):
            continue
        result = run_worker(quick, WorkerCall(_DESCRIBE, "run", {"file": str(file)}), wrapper)
        if result.error is not None:
            raise _unusable(file, f"{result.error.kind}: {result.error.message}")
        tool = Tool(_function(file, result.value), "own", file)
        if tool.name in {*taken, *(other.name for other in found)}:
            raise _unusable(file, f"there is a tool named {tool.name} already")
        found.append(tool)
    if not found:
        raise Failure(f"there is no tool in {folder}", "Put .py files with SCHEMA and run there.")
    return tuple(found)


def _function(file: Path, schema: Any) -> dict[str, Any]:
    function = schema.get("function", schema) if isinstance(schema, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise _unusable(file, 'SCHEMA needs "name", "description" and "parameters"')
    if not _NAME.fullmatch(function["name"]):
        raise _unusable(file, f"{function['name']!r} is no name for a tool")
    if not isinstance(function.get("parameters", {}), dict):
        raise _unusable(file, "SCHEMA's parameters must be a JSON schema")
    return {"type": "function", "function": function}


def _unusable(file: Path, why: str) -> Failure:
    return Failure(f"{file} cannot be used as a tool: {why}", "Repair it, or move it away.")
