"""A tool function called inside the sandbox: values, errors, and a protocol that trusts nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import worker_call
from minicpm5_mac.sandbox.policy import Limits, Policy
from minicpm5_mac.sandbox.worker_call import RunningWorker, WorkerCall, run_worker, worker_command

NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def tool(tmp_path, workspace):
    """Write a tool module; returns a function that calls one of its functions in the sandbox."""
    folder = tmp_path / "tools"
    folder.mkdir()
    file = folder / "tool.py"

    def call(source: str, function: str = "run", policy: Policy | None = None, **arguments):
        file.write_text(textwrap.dedent(source))
        policy = policy or Policy(workspace, read=(folder,), limits=Limits(wall_seconds=20))
        return run_worker(policy, WorkerCall(file, function, arguments))

    return call


@pytest.fixture
def folder(tool, tmp_path):
    return tmp_path / "tools"


def test_a_value_comes_back_and_what_is_printed_stays_apart(tool, sandbox):
    result = tool("def run(a, b): print('noise'); return {'sum': a + b}", a=1, b=2)
    assert (result.value, result.error) == ({"sum": 3}, None)
    assert result.printed == "noise\n"


def test_an_exception_is_an_error_with_its_kind(tool, sandbox):
    result = tool("def run(): open('missing')")
    assert result.error.kind == "FileNotFoundError"
    assert "missing" in result.error.message


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def run(): return {1, 2}", "TypeError"),
        ("def run(): return float('nan')", "ValueError"),
        ("def run(x): pass", "TypeError"),
        ("def other(): pass", "AttributeError"),
        ("def run(:", "SyntaxError"),
        ("import no_such_package\ndef run(): pass", "ModuleNotFoundError"),
        ("def run():\n a = []\n a.append(a)\n return a", "ValueError"),
    ],
)
def test_what_cannot_be_answered_is_an_error(tool, sandbox, source, kind):
    assert tool(source).error.kind == kind


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef run(): os._exit(0)",
        "import os\ndef run(): os.kill(os.getpid(), 9)",
        "import os\ndef run():\n for fd in range(3, 20):\n"
        "  try: os.write(fd, b'junk')\n  except OSError: pass\n os._exit(0)",
        "import os\ndef run():\n for fd in range(3, 20):\n"
        "  try: os.write(fd, b'[' * 100000)\n  except OSError: pass\n os._exit(0)",
        "import os\ndef run():\n for fd in range(3, 20):\n"
        '  try: os.write(fd, b\'{"value": 1, "ok": 2}\')\n  except OSError: pass\n os._exit(0)',
    ],
)
def test_an_answer_of_another_form_is_a_protocol_error(tool, sandbox, source):
    result = tool(source)
    assert (result.value, result.error.kind) == (None, "protocol")


def test_an_answer_that_is_too_long_is_refused(tool, sandbox, monkeypatch):
    monkeypatch.setattr(worker_call, "RESPONSE_BYTES", 1000)
    with pytest.raises(Failure, match="returned more"):
        tool("def run(): return 'x' * 100000")


def test_arguments_that_are_too_long_are_refused(tool, sandbox, monkeypatch):
    monkeypatch.setattr(worker_call, "REQUEST_BYTES", 1000)
    with pytest.raises(Failure, match="arguments"):
        tool("def run(x): return 1", x="x" * 2000)


def test_time_and_cancel_are_errors_the_model_can_be_told(tool, folder, workspace, sandbox):
    source = "import time\ndef run(): time.sleep(60)"
    short = Policy(workspace, read=(folder,), limits=Limits(wall_seconds=0.5))
    assert tool(source, policy=short).error.kind == "timeout"
    worker = RunningWorker(Policy(workspace, read=(folder,)), WorkerCall(folder / "tool.py", "run"))
    threading.Timer(0.3, worker.cancel).start()
    assert worker.wait().error.kind == "cancelled"


def test_a_tool_runs_where_the_workspace_is_and_sees_no_input(tool, workspace, sandbox):
    source = "import os, sys\ndef run(): return [os.getcwd(), sys.stdin.read(), os.getpid() < 50]"
    assert tool(source).value == [str(workspace), "", True]


def test_a_tool_may_import_this_package_and_its_neighbours(tool, folder, sandbox):
    (folder / "neighbour.py").write_text("there = 5")
    source = """
        import neighbour
        from minicpm5_mac.sandbox.protected import is_protected
        def run(): return [neighbour.there, is_protected("/a/.git")]
    """
    assert tool(source).value == [5, True]


def test_a_tool_cannot_leave_bytecode_or_change_itself(tool, folder, sandbox):
    result = tool("import neighbour_missing as x\ndef run(): pass")
    assert result.error.kind == "ModuleNotFoundError"
    assert tool("def run(): open(__file__, 'w')").error.kind == "OSError"
    assert os.listdir(folder) == ["tool.py"]


def test_a_file_beyond_reach_cannot_be_a_tool(workspace, tmp_path, sandbox):
    hidden = tmp_path / "hidden.py"
    hidden.write_text("def run(): return 1")
    result = run_worker(Policy(workspace), WorkerCall(hidden, "run"))
    assert result.error.kind == "FileNotFoundError"


def test_reading_needs_no_placeholder(tool, folder, workspace, sandbox):
    read_only = Policy(workspace, read=(folder,), writable=False)
    source = "import os\ndef run(): return os.listdir()"
    assert tool(source, policy=read_only).value == []
    refused = tool("def run(): open('x', 'w')", policy=read_only)
    assert "Read-only" in refused.error.message


@given(JSON)
def test_the_worker_reads_and_writes_json_as_the_library_does(value):
    """The worker's own codec against json, without the sandbox: what goes in comes out."""
    namespace = _codec()
    assert namespace["read_json"](json.dumps(value)) == value
    assert json.loads(namespace["write_json"](value)) == value


def _codec(found: dict = {}) -> dict:  # noqa: B006
    if not found:
        source = (worker_call._WORKER).read_text().removesuffix("main()\n")
        exec(compile(source, "worker.py", "exec"), found)
    return found


def test_starting_loads_almost_nothing(tmp_path):
    """What is paid for on every call: no json, re, typing, importlib or pathlib."""
    tool = tmp_path / "tool.py"
    tool.write_text("import sys\ndef run(): return sorted(sys.modules)")
    request = json.dumps({"file": str(tool), "function": "run", "arguments": {}})
    answer = subprocess.run(
        worker_command(), input=request.encode(), stdout=subprocess.PIPE, check=True
    )
    loaded = set(json.loads(answer.stdout)["value"])
    assert not loaded & {"json", "re", "enum", "typing", "importlib.machinery", "pathlib", "site"}
    assert sys.version_info >= (3, 11)
