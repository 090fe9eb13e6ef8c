"""run_command and python: what the model is told of what ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minicpm5_mac.agent.running_call import RunningCall
from minicpm5_mac.messages import ToolCall


@pytest.mark.parametrize(
    ("command", "outcome", "status", "text"),
    [
        ("echo hello", "ok", 0, "hello\n"),
        ("true", "ok", 0, "[no output]"),
        ("echo no >&2; exit 3", "error", 3, "no\n[exit status 3]"),
        ("exit 4", "error", 4, "[exit status 4]"),
        ("sleep 999 & echo started", "ok", 0, "started\n"),
        ("printf 'a\\033]52;c;aGk=\\007b'", "ok", 0, "ab"),
        ("printf 'a\\342\\200\\256b'", "ok", 0, "a\u27e8U+202E\u27e9b"),
        ("pwd | sed 's:.*/::'", "ok", 0, "ws\n"),
        ("head -c 40 /dev/zero", "ok", 0, "[40 bytes of binary output, not shown]"),
    ],
)
def test_a_command_is_told_with_its_output_and_status(call, command, outcome, status, text):
    result = call("run_command", command=command)
    assert (result.outcome, result.status, result.text) == (outcome, status, text)


def test_a_program_in_python(call):
    code = "import sys\nprint(6 * 7)\nsys.exit(0)"
    assert call("python", code=code).text == "42\n"
    failed = call("python", code="1/0")
    assert failed.outcome == "error"
    assert "ZeroDivisionError" in failed.text
    assert failed.text.endswith("[exit status 1]")


def test_a_time_limit_is_named_with_what_was_written_before(call):
    result = call("run_command", command="echo begun; while :; do :; done", timeout=1)
    assert (result.outcome, result.status) == ("limit", 124)
    assert result.text.startswith("begun\n[time limit")


def test_long_output_is_head_and_tail_with_exact_counts(call):
    result = call("run_command", command="seq 1 20000")
    total = sum(len(str(n)) + 1 for n in range(1, 20001))
    assert result.text.startswith("1\n2\n")
    assert "20000\n[" in result.text
    assert f"[{total:,} bytes; read_file with path output-1 shows them in pages]" in result.text
    assert result.spill is not None
    assert result.spill.read_text() == "".join(f"{n}\n" for n in range(1, 20001))


def test_a_flood_is_ended_and_little_of_it_is_kept_in_memory(toolbox):
    policy = replace(toolbox.policy, limits=replace(toolbox.policy.limits, output_bytes=4 << 20))
    running = RunningCall(
        toolbox.tools["run_command"], ToolCall("run_command", {"command": "yes"}), policy,
        place={}, output_name="output-1", wrapper=None,
    )  # fmt: skip
    heard = sum(len(text) for text in running.output())
    assert running.result.outcome == "limit"
    assert "too much output" in running.result.text
    assert heard < 1 << 20


def test_output_comes_while_the_command_still_runs_and_a_cancel_keeps_it(toolbox):
    running = RunningCall(
        toolbox.tools["run_command"],
        ToolCall("run_command", {"command": "echo first; sleep 600"}),
        toolbox.policy, place={}, output_name="output-1", wrapper=None,
    )  # fmt: skip
    for text in running.output():
        assert text == "first\n"
        running.cancel()
    assert running.result.outcome == "cancelled"
    assert running.result.text.startswith("first\n[the user cancelled it after")


@pytest.mark.parametrize(
    "command",
    [
        "cat /root/.ssh/id_rsa",
        "cat ../beside/secret",
        "curl -m 3 http://1.1.1.1",
        "cat /etc/shadow",
    ],
)
def test_what_the_sandbox_stops_is_an_error_and_the_session_goes_on(call, workspace, command):
    beside = workspace.parent / "beside"
    beside.mkdir()
    (beside / "secret").write_text("secret")
    assert call("run_command", command=command).outcome == "error"
    assert call("run_command", command="echo on").text == "on\n"


def test_two_calls_at_once_do_not_mix_their_outputs(toolbox):
    running = [
        RunningCall(
            toolbox.tools["run_command"],
            ToolCall("run_command", {"command": f"for i in 1 2 3 4 5 6; do echo {word}; done"}),
            toolbox.policy, place={}, output_name="output-1", wrapper=None,
        )
        for word in ("left", "right")
    ]  # fmt: skip
    heard = ["".join(call.output()) for call in running]
    assert heard == ["left\n" * 6, "right\n" * 6]
    assert [call.result.text for call in running] == heard
