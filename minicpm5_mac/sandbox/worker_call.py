"""One tool function, called inside the sandbox: the choke point of every tool.

    result = run_worker(policy, WorkerCall(Path("…/read_file.py"), "run", {"path": "a.txt"}))

The function gets the call's arguments as keywords, its working directory is the workspace, TMPDIR
its private folder, and it returns what JSON can hold. The app never opens a path the model
named: what it gets back is bytes from a process behind the wall, and is checked as such.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minicpm5_mac
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import MIB, Policy
from minicpm5_mac.sandbox.process import Ended, Reason, RunningCommand, start
from minicpm5_mac.sandbox.wrapping import Wrapper

REQUEST_BYTES = 16 * MIB
RESPONSE_BYTES = 16 * MIB
_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class WorkerCall:
    """Which function to call with which keyword arguments (JSON values).

    file: a Python file that the policy lets the worker read: one of this package's, or one in a
        folder granted for reading.
    """

    file: Path
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerError:
    """Why there is no value. kind: the exception's class name, or a `Reason`, or `protocol`."""

    kind: str
    message: str


@dataclass(frozen=True)
class WorkerResult:
    """value: what the function returned; or error. ended: how its process ended.

    printed: what the tool wrote to stdout and stderr, control sequences removed.
    """

    value: Any
    error: WorkerError | None
    ended: Ended
    printed: str


class RunningWorker:
    """A worker call that runs; `cancel` and `wait` may be called from any thread."""

    def __init__(self, policy: Policy, call: WorkerCall, wrapper: Wrapper | None = None) -> None:
        self._response = bytearray()
        self._command: RunningCommand = start(
            policy,
            worker_command(),
            on_output=self._collect,
            separate_stderr=True,
            stdin=_request(call),
            wrapper=wrapper,
        )

    def cancel(self) -> None:
        self._command.cancel()

    def wait(self) -> WorkerResult:
        """The result. Raises Failure when the sandbox did not start or answers too much."""
        ended = self._command.wait()
        printed = ended.stderr.text() if ended.stderr is not None else ""
        if ended.reason is not Reason.EXIT:
            error = WorkerError(ended.reason, _ended_text(ended.reason))
            return WorkerResult(None, error, ended, printed)
        value, error = _parse(bytes(self._response), printed)
        return WorkerResult(value, error, ended, printed)

    def _collect(self, stream: str, chunk: bytes) -> None:
        if stream == "stdout":
            if len(self._response) + len(chunk) > RESPONSE_BYTES:
                raise Failure(
                    f"a tool returned more than {RESPONSE_BYTES // MIB} MiB",
                    "Ask it for less at a time.",
                )
            self._response += chunk


def run_worker(policy: Policy, call: WorkerCall, wrapper: Wrapper | None = None) -> WorkerResult:
    """Call a tool function inside the sandbox and wait for it."""
    worker = RunningWorker(policy, call, wrapper)
    try:
        return worker.wait()
    except KeyboardInterrupt:
        worker.cancel()
        with contextlib.suppress(Failure):
            worker.wait()
        raise


def worker_command() -> Sequence[str]:
    """The interpreter without site packages, user folder, or bytecode to write."""
    package_parent = str(Path(minicpm5_mac.__file__).parent.parent)
    return (interpreter(), "-I", "-S", "-B", str(_WORKER), package_parent)


def interpreter() -> str:
    """The program behind `sys.executable`: a virtual environment's lookup is not needed."""
    return os.path.realpath(sys.executable)


def python_command(code: str) -> Sequence[str]:
    """What the `python` tool runs: the app's own interpreter, standard library only."""
    return (interpreter(), "-I", "-S", "-B", "-c", code)


def shell_command(command: str) -> Sequence[str]:
    """What the shell tool runs: zsh without rc files on macOS, sh elsewhere."""
    if sys.platform == "darwin":
        return ("/bin/zsh", "-f", "-c", command)
    return ("/bin/sh", "-c", command)


def _request(call: WorkerCall) -> bytes:
    request = {"file": str(call.file), "function": call.function, "arguments": call.arguments}
    data = json.dumps(request).encode()
    if len(data) > REQUEST_BYTES:
        raise Failure(
            f"the arguments of a tool are {len(data) // MIB} MiB long",
            f"At most {REQUEST_BYTES // MIB} MiB are passed on: write the file in parts.",
        )
    return data


def _parse(response: bytes, printed: str) -> tuple[Any, WorkerError | None]:
    try:
        answer = json.loads(response)
    except (ValueError, RecursionError):
        said = printed.strip()[-500:] or "nothing was printed"
        return None, WorkerError("protocol", f"the tool ended without an answer: {said}")
    if isinstance(answer, dict) and set(answer) == {"value"}:
        return answer["value"], None
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and isinstance(error.get("kind"), str):
        return None, WorkerError(error["kind"], str(error.get("message", "")))
    return None, WorkerError("protocol", "the tool's answer has an unknown form")


def _ended_text(reason: Reason) -> str:
    return {
        Reason.TIMEOUT: "it took longer than its time limit",
        Reason.CANCELLED: "it was cancelled",
        Reason.OUTPUT: "it wrote more output than is allowed",
        Reason.MEMORY: "it used more memory than is allowed",
        Reason.PROCESSES: "it started more processes than are allowed",
        Reason.DISK: "the disk is nearly full",
    }[reason]
