"""The life of one started command: read, watched, limited, and ended with its whole tree.

All of it in one thread, around one selector; `process.py` gives it the thread.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.ended import Ended, Reason
from minicpm5_mac.sandbox.feed import Feed
from minicpm5_mac.sandbox.output import OutputKeeper
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.process_tree import ProcessTree
from minicpm5_mac.sandbox.run_folder import open_spill

WATCH_SECONDS = 0.25
# A program that waits to be talked to is looked at less often, for the battery's sake.
IDLE_AFTER_SECONDS, IDLE_WATCH_SECONDS = 5.0, 1.0
GRACE_SECONDS = 2.0  # between TERM and KILL
DRAIN_SECONDS = 2.0  # for output still in the pipes when everything is dead
POLL_SECONDS = 0.05
EXIT_POLL_SECONDS = 0.005  # where the end of a process has no descriptor to wait on
CHUNK_BYTES = 1 << 16
TIMEOUT_STATUS = 124  # as timeout(1) of coreutils

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]

# Reasons that leave no time to say goodbye: each grows while one waits.
_AT_ONCE = {Reason.OUTPUT, Reason.MEMORY, Reason.PROCESSES, Reason.DISK}


class Supervision:
    """One process, from its start to the death of its tree.

    wake: a descriptor that becomes readable when the command is `cancelled`, or fed.
    feed: what it is to read, None for nothing.
    status: the read end of bubblewrap's status pipe, if there is one.
    tmp: the run's own folder.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        policy: Policy,
        *,
        wake: int,
        cancelled: threading.Event,
        feed: Feed | None,
        on_output: OnOutput | None,
        status: int | None,
        tmp: Path,
    ) -> None:
        self._process = process
        self._policy = policy
        self._wake = wake
        self._cancelled = cancelled
        self._feed = feed
        self._live = feed is not None and feed.live
        self._on_output = on_output
        self._tmp = tmp
        self._tree = ProcessTree(process.pid)
        self._init: int | None = None
        self._inner_status: int | None = None
        self._status_text = b""
        self._reason: Reason | None = None
        self._callback_error: BaseException | None = None
        self._keepers: dict[str, OutputKeeper] = {}
        self._began = time.monotonic()
        self._counted_from = 0
        self._last_heard = self._began
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake, selectors.EVENT_READ, "wake")
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            if stream is not None:
                spill = None if self._live else open_spill
                self._keepers[name] = OutputKeeper(self._policy.limits, spill)
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
        self._writing = False
        self._open_input()
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
        deadline = math.inf if limits.lasting else self._began + limits.wall_seconds
        next_look = self._began + WATCH_SECONDS
        kill_at: float | None = None
        try:
            while not self._exited():
                now = time.monotonic()
                if self._reason is None and now >= deadline:
                    self._reason = Reason.TIMEOUT
                if self._reason is None and now >= next_look:
                    self._reason = self._over_a_limit()
                    next_look = time.monotonic() + self._pause()
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
                os.read(self._wake, CHUNK_BYTES)
                if self._cancelled.is_set():
                    self._reason = self._reason or Reason.CANCELLED
                elif self._live:
                    self._last_heard = time.monotonic()
                    self._counted_from = self._total()
                    self._open_input()
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
            self._last_heard = time.monotonic()
            if self._total() - self._counted_from > self._policy.limits.output_bytes:
                self._reason = self._reason or Reason.OUTPUT
            if self._on_output is not None and self._callback_error is None:
                try:
                    self._on_output(name, chunk)
                except BaseException as error:
                    self._callback_error = error
                    self._reason = self._reason or Reason.CANCELLED

    def _write_input(self) -> None:
        stdin, feed = self._process.stdin, self._feed
        assert stdin is not None
        assert feed is not None
        try:
            waiting = feed.next(CHUNK_BYTES)
            feed.taken(os.write(stdin.fileno(), waiting) if waiting else 0)
        except BlockingIOError:
            return
        except BrokenPipeError:
            feed.drop()
        if feed.ended:
            self._selector.unregister(stdin)
            stdin.close()
        elif not feed.waiting:
            self._selector.unregister(stdin)
            self._writing = False

    def _open_input(self) -> None:
        """Wait for room in the pipe where there is something to write, or the end to tell."""
        stdin, feed = self._process.stdin, self._feed
        if stdin is None or stdin.closed or feed is None or self._writing:
            return
        if feed.waiting or feed.ended:
            self._selector.register(stdin, selectors.EVENT_WRITE, "stdin")
            self._writing = True

    def _total(self) -> int:
        return sum(keeper.total for keeper in self._keepers.values())

    def _pause(self) -> float:
        """Seconds until the tree is looked at again."""
        idle = self._live and time.monotonic() - self._last_heard > IDLE_AFTER_SECONDS
        return IDLE_WATCH_SECONDS if idle else WATCH_SECONDS

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
