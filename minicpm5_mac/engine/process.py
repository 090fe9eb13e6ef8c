"""The engine in a process of its own: drawing never slows decode, a crash costs a message.

The child is a plain `subprocess` with pipes (`multiprocessing` fails inside a running Textual
app). It ends with its standard input, so however this process goes, no orphan keeps the model.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from minicpm5_mac import locations
from minicpm5_mac.engine import wire
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import (
    EngineSlow,
    EngineStopped,
    Event,
    ModelFailed,
    ModelReady,
    ModelStage,
    ReplyEnd,
)
from minicpm5_mac.request import ReplyRequest

log = logging.getLogger(__name__)

# Without a heartbeat for this long the process is stuck below Python: it is ended. A chunk of
# prefill or a kernel's compilation does not stop heartbeats, they come from another thread.
HUNG_SECONDS = 30.0
# The model has not moved for this long, with heartbeats: the user is told, and decides.
SLOW_SECONDS = 30.0
# A child that is asked to end has this long.
CLOSE_SECONDS = 2.0
LOG_BYTES = 1_000_000

_END = object()


class _Child:
    """One model process: its pipes, its reader, the messages that came."""

    def __init__(self, log_path: Path) -> None:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        if log_path.exists() and log_path.stat().st_size > LOG_BYTES:
            log_path.replace(log_path.with_suffix(".old.log"))
        self.log_path = log_path
        with log_path.open("ab") as log_file:
            self._log_start = log_file.tell()
            self._popen = subprocess.Popen(
                # -P: the folder in which the user works is not a place to import from.
                [sys.executable, "-P", "-m", "minicpm5_mac.engine.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                env=_environment(),
                close_fds=True,
            )
        self.messages: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.last_beat = time.monotonic()
        self._commands: queue.SimpleQueue[wire.Command] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="engine-reader", daemon=True).start()
        threading.Thread(target=self._write, name="engine-writer", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._popen.poll() is not None

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._popen.stdout:
                try:
                    message = wire.decode_message(line)
                except msgspec.MsgspecError:
                    log.exception("not an event: %r", line[:200])
                    continue
                self.last_beat = time.monotonic()
                self.messages.put(message)
        self.messages.put(_END)

    def _write(self) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while True:
                self._popen.stdin.write(wire.encode(self._commands.get()))
                self._popen.stdin.flush()

    def send(self, command: wire.Command) -> bool:
        """Queue a command, never blocking: a stuck child must not freeze who asks.

        False where the process has ended.
        """
        self._commands.put(command)
        return self._popen.poll() is None

    def end(self, *, gently: bool) -> int | None:
        """End the process and collect it; its exit status."""
        if gently:
            self.send(wire.Close())
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(CLOSE_SECONDS)
        if self._popen.poll() is None:
            self._popen.kill()
        status = self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            with contextlib.suppress(OSError, ValueError):
                pipe.close()  # type: ignore[union-attr]
        return status

    def last_words(self) -> str:
        """The end of what the process wrote to its log."""
        with contextlib.suppress(OSError), self.log_path.open("rb") as log_file:
            log_file.seek(self._log_start)
            text = log_file.read()[-4000:].decode(errors="replace").strip()
            return "\n".join(collections.deque(text.splitlines(), maxlen=3))
        return ""


class EngineProcess:
    """See `engine.interface.Engine`: the model lives in a child process."""

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self._child: _Child | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The model process, None where there is none."""
        child = self._child
        return None if child is None else child.pid

    def start(self) -> Iterator[Event]:
        """See `Engine.start`."""
        self.close()
        yield ModelStage("starting")
        try:
            child = self._child = _Child(locations.log_dir() / "engine.log")
        except OSError as error:
            yield ModelFailed("error", f"The model process cannot be started: {error}")
            return
        child.send(wire.Start(self.options))
        stopped: EngineStopped | None = None
        for event in self._until(child, ModelReady, ModelFailed):
            if isinstance(event, EngineStopped):
                stopped = event
                break
            yield event
        if stopped is not None:
            text = "The model process ended while it was loading the model."
            yield ModelFailed("error", text, stopped.detail)

    def reply(self, request: ReplyRequest) -> Iterator[Event]:
        """See `Engine.reply`."""
        child = self._child
        if child is None or not child.send(wire.Reply(request)):
            yield self._stopped(child)
            yield ReplyEnd("failed", "error", detail="The model process is not running.")
            return
        ended = False
        try:
            for event in self._until(child, ReplyEnd):
                ended = isinstance(event, ReplyEnd | EngineStopped)
                yield event
                if isinstance(event, EngineStopped):
                    yield ReplyEnd("failed", "error", detail="The model process ended.")
        finally:
            if not ended:  # the caller stopped listening
                child.send(wire.Cancel())
                collections.deque(self._until(child, ReplyEnd), maxlen=0)

    def cancel(self) -> None:
        """See `Engine.cancel`."""
        if (child := self._child) is not None:
            child.send(wire.Cancel())

    def answer_now(self) -> None:
        """See `Engine.answer_now`."""
        if (child := self._child) is not None:
            child.send(wire.AnswerNow())

    def stopped(self) -> EngineStopped | None:
        """See `Engine.stopped`."""
        child = self._child
        return self._stopped(child) if child is not None and child.ended else None

    def close(self) -> None:
        """See `Engine.close`."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end(gently=True)

    def _until(self, child: _Child, *last: type[Event]) -> Iterator[Event]:
        """Events up to one of `last`, or to EngineStopped where the process ends or hangs."""
        told_at = 0.0
        while True:
            try:
                message = child.messages.get(timeout=wire.HEARTBEAT)
            except queue.Empty:
                if time.monotonic() - child.last_beat > HUNG_SECONDS:
                    yield self._stopped(child, hung=True)
                    return
                continue
            if message is _END:
                yield self._stopped(child)
                return
            if isinstance(message, wire.Heartbeat):
                if message.idle >= SLOW_SECONDS + told_at:
                    told_at = message.idle
                    yield EngineSlow(message.idle)
                elif message.idle < SLOW_SECONDS:
                    told_at = 0.0
            elif isinstance(message, Event):
                yield message
                if isinstance(message, last):
                    return

    def _stopped(self, child: _Child | None, *, hung: bool = False) -> EngineStopped:
        with self._lock:
            mine = child is not None and self._child is child
            if mine:
                self._child = None
        if child is None or not mine:
            return EngineStopped("closed")
        status = child.end(gently=False)
        if hung:
            return EngineStopped("hung", f"No sign of life for {HUNG_SECONDS:.0f} seconds.")
        return EngineStopped("crashed", f"{_cause(status)}\n{child.last_words()}".strip())


def _cause(status: int | None) -> str:
    if status is not None and status < 0:
        if -status == 9:
            return "The model process was killed (signal 9), most often for want of memory."
        return f"The model process died of signal {-status}."
    return f"The model process ended with status {status}."


def _environment() -> dict[str, str]:
    """The child's: ours, finding the same packages, and with no progress bars of libraries."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[2]), *filter(None, [environment.get("PYTHONPATH")])]
    )
    environment["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    environment["PYTHONUNBUFFERED"] = "1"
    return environment
