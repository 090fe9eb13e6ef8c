"""One command under a policy: started, read, limited, ended with everything it started.

    command = start(policy, ["/bin/sh", "-c", "make"], on_output=show)
    ended = command.wait()          # or command.cancel() from another thread

One that is talked to as it runs (`live=True`) is written to with `send`, until `close_input`.

A thread of its own does all of it: bubblewrap's `--die-with-parent` fires when the *thread* that
started it is gone (prctl(2), PR_SET_PDEATHSIG), so that thread has to live as long as the command.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import guard
from minicpm5_mac.sandbox.ended import Ended, Reason
from minicpm5_mac.sandbox.feed import Feed
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.run_folder import make_run_folder, remove_run_folder
from minicpm5_mac.sandbox.supervision import OnOutput, Supervision
from minicpm5_mac.sandbox.wrapping import Wrapped, Wrapper, production_wrapper

__all__ = ["Ended", "OnOutput", "Reason", "RunningCommand", "run", "start"]


class RunningCommand:
    """A command that runs. Its methods may be called from any thread."""

    def __init__(
        self,
        policy: Policy,
        command: Sequence[str],
        wrapper: Wrapper,
        on_output: OnOutput | None,
        separate_stderr: bool,
        feed: Feed | None,
    ) -> None:
        self._policy = policy
        self._command = tuple(command)
        self._wrapper = wrapper
        self._on_output = on_output
        self._separate = separate_stderr
        self._feed = feed
        self._cancelled = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
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
        self._cancelled.set()
        self._wake()

    def send(self, data: bytes) -> None:
        """Write to a live command. What comes after its end, or `close_input`, is dropped.

        Raises Failure where it has long stopped reading.
        """
        assert self._feed is not None
        self._feed.put(data)
        self._wake()

    def close_input(self) -> None:
        """A live command reads end-of-file after what it was sent."""
        if self._feed is not None:
            self._feed.close()
            self._wake()

    def _wake(self) -> None:
        # A pipe that is full wakes as well as one byte more would.
        with self._closing, contextlib.suppress(BlockingIOError):
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
                    supervision = Supervision(
                        process,
                        self._policy,
                        wake=self._wake_read,
                        cancelled=self._cancelled,
                        feed=self._feed,
                        on_output=self._on_output,
                        status=wrapped.status,
                        tmp=tmp,
                    )
                    self._ended = supervision.until_dead()
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
                stdin=subprocess.DEVNULL if self._feed is None else subprocess.PIPE,
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


def start(
    policy: Policy,
    command: Sequence[str],
    *,
    on_output: OnOutput | None = None,
    separate_stderr: bool = False,
    stdin: bytes | None = None,
    live: bool = False,
    wrapper: Wrapper | None = None,
) -> RunningCommand:
    """Start `command` under `policy`; returns once it runs, or has failed to (see `wait`).

    on_output: called with every chunk as it comes, in the command's own thread; it must not wait
        for long, since the command does then. What it raises cancels the command.
    separate_stderr: keep the two streams apart; else stderr is merged in the order written.
    stdin: bytes to feed; without them the command reads end-of-file at once.
    live: it is written to as it runs. Of its output head and tail alone are kept.
    wrapper: the back end; the production one unless a user turned the sandbox off for a session
        (`wrapping.unconfined`) or a test takes a defence away.
    Raises Failure where this system has no sandbox.
    """
    feed = None if stdin is None and not live else Feed(stdin or b"", live=live)
    return RunningCommand(
        policy, command, wrapper or production_wrapper(), on_output, separate_stderr, feed
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
