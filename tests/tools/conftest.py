"""Tools called the way a turn calls them: each in the sandbox, in a workspace of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tried_sandbox import sandbox, sandbox_cache, workspace  # noqa: F401

from minicpm5_mac.agent.call_result import CallResult
from minicpm5_mac.agent.running_call import RunningCall
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy

Call = Callable[..., CallResult]


@pytest.fixture
def toolbox(workspace: Path, sandbox: None) -> Toolbox:  # noqa: F811
    return Toolbox(Policy(workspace))


@pytest.fixture
def call(toolbox: Toolbox) -> Call:
    """Run a tool by its name; what a file tool saw is remembered as in a session."""

    def run(name: str, **arguments) -> CallResult:
        running = RunningCall(
            toolbox.tools[name],
            ToolCall(name, arguments),
            toolbox.policy,
            place=toolbox.place(),
            output_name="output-1",
            wrapper=toolbox.wrapper,
        )
        for _ in running.output():
            pass
        if isinstance(running.value, dict) and "stamp" in running.value:
            toolbox.seen[running.value["path"]] = running.value["stamp"]
        return running.result

    return run
