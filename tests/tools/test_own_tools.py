"""A user's own tools: a file each, run in the sandbox and nowhere else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from minicpm5_mac.agent.running_call import RunningCall
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.tools.own_tools import own_tools

ADD = """
SCHEMA = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}

def run(a, b):
    return {"sum": a + b}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my-tools"
    made.mkdir()
    return made


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def run(toolbox: Toolbox, name: str, **arguments):
    running = RunningCall(
        toolbox.tools[name], ToolCall(name, arguments), toolbox.policy,
        place={}, output_name="output-1", wrapper=None,
    )  # fmt: skip
    list(running.output())
    return running.result


def test_own_tools_are_offered_after_the_built_in_ones_and_run(sandbox, workspace, folder):
    write(folder, "add.py", ADD)
    write(folder, "_shared.py", "nothing")
    toolbox = Toolbox(Policy(workspace), own=folder)
    assert list(toolbox.prepare()) == []
    assert list(toolbox.tools)[-1] == "add"
    assert toolbox.tools["add"].kind == "own"
    assert run(toolbox, "add", a=2, b=3).text == '{"sum": 5}'


def test_their_code_never_runs_outside_of_the_sandbox(sandbox, workspace, folder):
    mark = folder / "was-here"
    touch = f"open({str(mark)!r}, 'w')"
    tried = f"try:\n    {touch}\nexcept OSError:\n    pass\n"
    write(folder, "add.py", f"{ADD}\n{tried}\ndef run(a, b):\n    {touch}\n")
    toolbox = Toolbox(Policy(workspace), own=folder)
    list(toolbox.prepare())
    result = run(toolbox, "add", a=1, b=1)
    assert result.outcome == "error"
    assert result.text.startswith("Error: OSError")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def run(): pass", "SCHEMA"),
        ("SCHEMA = {'name': 'x'}", "no function run"),
        ("SCHEMA = {'description': 'x'}\ndef run(): pass", "needs"),
        ("SCHEMA = {'name': 'two words'}\ndef run(): pass", "no name for a tool"),
        ("SCHEMA = {'name': 'read_file'}\ndef run(): pass", "already"),
        ("SCHEMA = {'name': 'x', 'parameters': []}\ndef run(): pass", "JSON schema"),
        ("SCHEMA = {'name': 'x'\n", "SyntaxError"),
        ("import no_such_package", "No module named"),
        ("while True: pass", "time limit"),
    ],
)
def test_a_file_that_is_no_tool_is_named_with_the_reason(
    sandbox, workspace, folder, text, words, monkeypatch
):
    monkeypatch.setattr("minicpm5_mac.tools.own_tools.DESCRIBE_SECONDS", 2.0)
    path = write(folder, "broken.py", text)
    policy = Policy(workspace, read=(folder,))
    with pytest.raises(Failure) as raised:
        own_tools(folder, policy, taken=("read_file",))
    assert str(path) in raised.value.text
    assert words in raised.value.text


def test_an_empty_folder_and_none_at_all_are_told(sandbox, workspace, folder):
    policy = Policy(workspace, read=(folder,))
    with pytest.raises(Failure, match="no tool in"):
        own_tools(folder, policy, taken=())
    with pytest.raises(Failure, match="not a folder"):
        own_tools(folder / "missing", policy, taken=())


def test_what_a_tool_prints_or_returns_reaches_the_model(sandbox, workspace, folder):
    write(folder, "talk.py", """
        SCHEMA = {"name": "talk", "description": "Talk."}
        def run(what="text"):
            print("printed")
            return {"text": "returned", "none": None, "list": [1, "ä"]}[what]
    """)  # fmt: skip
    toolbox = Toolbox(Policy(workspace), own=folder)
    list(toolbox.prepare())
    assert run(toolbox, "talk").text == "returned"
    assert run(toolbox, "talk", what="none").text == "printed\n"
    assert run(toolbox, "talk", what="list").text == '[1, "ä"]'
    assert "KeyError" in run(toolbox, "talk", what="absent").text
