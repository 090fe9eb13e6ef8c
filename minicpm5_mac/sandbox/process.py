"""One command under a policy: started, read, limited, ended with everything it started.

    command = start(policy, ["/bin/sh", "-c", "make"], on_output=show)
    ended = command.wait()          # or command.cancel() from another thread

A thread of its own does all of it: bubblewrap's `--die-with-parent` fires when the *thread* that
started it is gone (prctl(2), PR_SET_PDEATHSIG), so that thread has to live as long as the command.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import guard
from minicpm5_mac.sandbox.output import KeptOutput, OutputKeeper
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.process_tree import ProcessTree
from minicpm5_mac.sandbox.run_folder import make_run_folder, open_spill, remove_run_folder
from minicpm5_mac.sandbox.wrapping import Wrapped, Wrapper, production_wrapper

WATCH_SECONDS = 0.25
GRACE_SECONDS = 2.0  # between TERM and KILL
DRAIN_SECONDS = 2.0  # for output still in the pipes when everything is dead
POLL_SECONDS = 0.05
EXIT_POLL_SECONDS = 0.005  # where the end of a process has no descriptor to wait on
CHUNK_BYTES = 1 << 16
TIMEOUT_STATUS = 124  # as timeout(1) of coreutils

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


class Reason(enum.StrEnum):
    """Why a run ended."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUTPUT = "output"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"


# Reasons that leave no time to say goodbye: each grows while one waits.
_AT_ONCE = {Reason.OUTPUT, Reason.MEMORY, Reason.PROCESSES, Reason.DISK}


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    status: the command's exit status as a shell gives it (128 + signal); 124 at a timeout, 130
        after a cancel, 137 when a limit ended it.
    stderr: None where it was merged into stdout.
    """

    reason: Reason
    status: int
    seconds: float
    stdout: KeptOutput
    stderr: KeptOutput | None


class RunningCommand:
    """A command that runs. `cancel` and `wait` may be called from any thread."""

    def __init__(
        self,
        policy: Policy,
        command: Sequence[str],
        wrapper: Wrapper,
        on_output: OnOutput | None,
        separate_stderr: bool,
        stdin: bytes | None,
    ) -> None:
        self._policy = policy
        self._command = tuple(command)
        self._wrapper = wrapper
        self._on_output = on_output
        self._separate = separate_stderr
        self._stdin = stdin
        self._wake_read, self._wake_write = os.pipe()
        self._closing = threading.Lock()
        self._started = threading.Event()
        self._ended: Ended | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sandboxed command", daemon=True)
        self._thread.start()
        self._started.wait()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def cancel(self) -> None:
        """End it: TERM, two seconds, KILL. What it wrote so far is kept. Idempotent."""
        with self._closing:
            if self._wake_write >= 0:
                os.write(self._wake_write, b"x")

    def wait(self) -> Ended:
        """Until everything the command started is dead.

        Raises Failure when the sandbox could not be set up, and whatever `on_output` raised.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._ended is not None
        return self._ended

    def _run(self) -> None:
        tmp: Path | None = None
        try:
            tmp = make_run_folder()
            wrapped = self._wrapper(self._policy, self._command, tmp)
            try:
                process = self._start(wrapped)
            except BaseException:
                wrapped.abandon()
                raise
            try:
                with guard.watching(process.pid, tmp):
                    self._started.set()
                    self._ended = _Supervision(self, process, wrapped.status, tmp).until_dead()
            finally:
                wrapped.finish()
        except BaseException as error:
            self._error = error
        finally:
            if tmp is not None:
                remove_run_folder(tmp)
            with self._closing:
                os.close(self._wake_write)
                self._wake_write = -1
            os.close(self._wake_read)
            self._started.set()

    def _start(self, wrapped: Wrapped) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                wrapped.argv,
                stdin=subprocess.DEVNULL if self._stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if self._separate else subprocess.STDOUT,
                env=wrapped.environment,
                cwd="/",
                pass_fds=wrapped.descriptors,
                start_new_session=True,
            )
        except OSError as error:
            raise Failure(
                f"the sandbox did not start: {error}", "Run `minicpm5-mac doctor`."
            ) from error
        for descriptor in wrapped.descriptors:
            os.close(descriptor)
        return process


class _Supervision:
    """The life of one process, as its thread sees it."""

    def __init__(
        self,
        command: RunningCommand,
        process: subprocess.Popen[bytes],
        status: int | None,
        tmp: Path,
    ) -> None:
        self._tmp = tmp
        self._policy = command._policy
        self._on_output = command._on_output
        self._process = process
        self._wake = command._wake_read
        self._tree = ProcessTree(process.pid)
        self._input = memoryview(command._stdin or b"")
        self._init: int | None = None
        self._inner_status: int | None = None
        self._status_text = b""
        self._reason: Reason | None = None
        self._callback_error: BaseException | None = None
        self._keepers: dict[str, OutputKeeper] = {}
        self._began = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake, selectors.EVENT_READ, "wake")
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            if stream is not None:
                self._keepers[name] = OutputKeeper(self._policy.limits, open_spill)
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")
        # Readable once the process ended: nothing has to poll for it. macOS has no such descriptor.
        self._exit = os.pidfd_open(process.pid) if sys.platform == "linux" else None
        if self._exit is not None:
            self._selector.register(self._exit, selectors.EVENT_READ, "exit")
        self._open_streams = len(self._keepers)
        self._status_file = None if status is None else os.fdopen(status, "rb", buffering=0)
        if self._status_file is not None:
            os.set_blocking(self._status_file.fileno(), False)
            self._selector.register(self._status_file, selectors.EVENT_READ, "status")

    def until_dead(self) -> Ended:
        limits = self._policy.limits
        deadline = self._began + limits.wall_seconds
        next_look = self._began + WATCH_SECONDS
        kill_at: float | None = None
        try:
            while not self._exited():
                now = time.monotonic()
                if self._reason is None and now >= deadline:
                    self._reason = Reason.TIMEOUT
                if self._reason is None and now >= next_look:
                    self._reason = self._over_a_limit()
                    next_look = time.monotonic() + WATCH_SECONDS
                if self._reason is not None and kill_at is None:
                    kill_at = time.monotonic()
                    if self._reason not in _AT_ONCE:
                        self._terminate()
                        kill_at += GRACE_SECONDS
                if kill_at is not None and now >= kill_at:
                    self._kill()
                    break
                wait_for = [next_look if self._reason is None else now + POLL_SECONDS]
                wait_for += [deadline if self._reason is None else kill_at or now]
                if self._exit is None:
                    wait_for.append(now + EXIT_POLL_SECONDS)
                self._pump(max(0.0, min(wait_for) - time.monotonic()))
            self._bury()
        except BaseException:
            self._kill()
            self._bury()
            raise
        finally:
            self._close()
        if self._callback_error is not None:
            raise self._callback_error
        return self._result()

    def _exited(self) -> bool:
        """Whether the outer process is gone, without reaping it: its group id stays ours."""
        state = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return state is not None

    def _over_a_limit(self) -> Reason | None:
        limits = self._policy.limits
        size = self._tree.size()
        if size.processes > limits.processes:
            return Reason.PROCESSES
        if size.memory_bytes > limits.memory_bytes:
            return Reason.MEMORY
        for root in self._policy.write_roots:
            if shutil.disk_usage(root).free < limits.free_disk_bytes:
                return Reason.DISK
        return None

    def _terminate(self) -> None:
        # bubblewrap and its first process inside would die of TERM and take all with them.
        spare = {self._process.pid, self._init} if self._init is not None else set()
        self._tree.signal(signal.SIGTERM, frozenset(pid for pid in spare if pid is not None))

    def _kill(self) -> None:
        if self._init is not None:
            # First process of a process namespace: the kernel kills the rest with it, and the
            # process counts as dead only after them (pid_namespaces(7)).
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGKILL)
        self._tree.kill()

    def _bury(self) -> None:
        """After the outer process ended or was killed: end the rest, read what is left."""
        if self._init is None:
            self._tree.kill()
        if sys.platform == "darwin":
            from minicpm5_mac.sandbox import macos_survivors

            macos_survivors.kill(self._tmp)
        self._process.wait()
        until = time.monotonic() + DRAIN_SECONDS
        while self._open_streams and time.monotonic() < until:
            self._pump(POLL_SECONDS)
        self._read_status()
        if self._init is not None:
            _wait_gone(self._init)

    def _pump(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.data == "wake":
                os.read(self._wake, 1)
                self._selector.unregister(self._wake)
                self._reason = self._reason or Reason.CANCELLED
            elif key.data == "exit":
                self._selector.unregister(key.fd)
            elif key.data == "status":
                self._read_status()
            elif key.data == "stdin":
                self._write_input()
            else:
                self._read_output(key.data, key.fd)

    def _read_output(self, name: Stream, descriptor: int) -> None:
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                self._selector.unregister(descriptor)
                self._open_streams -= 1
                return
            self._keepers[name].add(chunk)
            total = sum(keeper.total for keeper in self._keepers.values())
            if total > self._policy.limits.output_bytes:
                self._reason = self._reason or Reason.OUTPUT
            if self._on_output is not None and self._callback_error is None:
                try:
                    self._on_output(name, chunk)
                except BaseException as error:
                    self._callback_error = error
                    self._reason = self._reason or Reason.CANCELLED

    def _write_input(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            written = os.write(stdin.fileno(), self._input[:CHUNK_BYTES]) if self._input else 0
            self._input = self._input[written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = memoryview(b"")
        if not self._input:
            self._selector.unregister(stdin)
            stdin.close()

    def _read_status(self) -> None:
        """bubblewrap's `--json-status-fd`: a line with child-pid, later one with exit-code."""
        if self._status_file is None:
            return
        chunk = self._status_file.read(CHUNK_BYTES)
        if chunk:
            self._status_text += chunk
            for line in self._status_text.splitlines():
                with contextlib.suppress(ValueError):
                    said = json.loads(line)
                    self._init = said.get("child-pid", self._init)
                    self._inner_status = said.get("exit-code", self._inner_status)
        elif chunk == b"":
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._status_file)

    def _close(self) -> None:
        self._selector.close()
        if self._exit is not None:
            os.close(self._exit)
        for stream in (
            self._process.stdin,
            self._process.stdout,
            self._process.stderr,
            self._status_file,
        ):
            if stream is not None:
                stream.close()

    def _result(self) -> Ended:
        stdout = self._keepers["stdout"].kept()
        stderr = self._keepers["stderr"].kept() if "stderr" in self._keepers else None
        seconds = time.monotonic() - self._began
        if self._reason is None and self._status_file is not None and self._inner_status is None:
            said = (stderr or stdout).text().strip()
            raise Failure(f"the sandbox did not start: {said}", _advice(said))
        code = self._process.returncode if self._inner_status is None else self._inner_status
        status = 128 - code if code < 0 else code
        if self._reason is Reason.TIMEOUT:
            status = TIMEOUT_STATUS
        elif self._reason is Reason.CANCELLED:
            status = 128 + signal.SIGINT
        elif self._reason is not None:
            status = 128 + signal.SIGKILL
        return Ended(self._reason or Reason.EXIT, status, seconds, stdout, stderr)


def start(
    policy: Policy,
    command: Sequence[str],
    *,
    on_output: OnOutput | None = None,
    separate_stderr: bool = False,
    stdin: bytes | None = None,
    wrapper: Wrapper | None = None,
) -> RunningCommand:
    """Start `command` under `policy`; returns once it runs, or has failed to (see `wait`).

    on_output: called with every chunk as it comes, in the command's own thread; it must not wait
        for long, since the command does then. What it raises cancels the command.
    separate_stderr: keep the two streams apart; else stderr is merged in the order written.
    stdin: bytes to feed; without them the command reads end-of-file at once.
    wrapper: the back end; the production one unless a user turned the sandbox off for a session
        (`wrapping.unconfined`) or a test takes a defence away.
    Raises Failure where this system has no sandbox.
    """
    return RunningCommand(
        policy, command, wrapper or production_wrapper(), on_output, separate_stderr, stdin
    )


def run(
    policy: Policy,
    command: Sequence[str],
    *,
    on_output: OnOutput | None = None,
    separate_stderr: bool = False,
    stdin: bytes | None = None,
    wrapper: Wrapper | None = None,
) -> Ended:
    """`start` and `wait`. An exception in the waiting thread (Ctrl-C) cancels the command."""
    command_running = start(
        policy,
        command,
        on_output=on_output,
        separate_stderr=separate_stderr,
        stdin=stdin,
        wrapper=wrapper,
    )
    try:
        return command_running.wait()
    except KeyboardInterrupt:
        command_running.cancel()
        command_running.wait()
        raise


def _wait_gone(pid: int) -> None:
    """Until a process that is not our child is dead (pidfd_open(2)): Linux only."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select(DRAIN_SECONDS)
    finally:
        os.close(descriptor)


def _advice(said: str) -> str:
    if "uid map" in said or "user namespace" in said or "CLONE_NEWUSER" in said:
        return (
            "This system forbids user namespaces. On Ubuntu: "
            "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
        )
    return "Run `minicpm5-mac doctor` to see what this system allows."
