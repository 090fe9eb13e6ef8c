"""The model process: `python -m minicpm5_mac.engine.child`, started by `engine.process`.

Commands come on standard input, events leave on what was standard output; the real standard
output goes to standard error (a log file), so that a stray print of any library cannot break the
stream. The process ends when its input does: whoever started it is gone then, however it went.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
import time
from typing import BinaryIO

from minicpm5_mac.engine import wire
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.signals import Signals
from minicpm5_mac.events import Event, ModelFailed
from minicpm5_mac.model import openblas
from minicpm5_mac.request import ReplyRequest

log = logging.getLogger(__name__)


class Outlet:
    """Lines to the parent, from two threads. idle: seconds since the last event while busy."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._moved: float | None = None

    def send(self, message: Event | wire.Heartbeat) -> None:
        """Write one line. The parent's end ends this process."""
        try:
            with self._lock:
                self._stream.write(wire.encode(message))
                self._stream.flush()
        except (BrokenPipeError, OSError):
            os._exit(0)

    def busy(self, running: bool) -> None:
        """Work begins, goes on, or is over."""
        self._moved = time.monotonic() if running else None

    def beat(self) -> None:
        """Send heartbeats for ever."""
        while True:
            moved = self._moved
            self.send(wire.Heartbeat(0.0 if moved is None else time.monotonic() - moved))
            time.sleep(wire.HEARTBEAT)


class Inlet:
    """Reads commands; cancel and answer_now act at once, the rest waits its turn."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._signals = Signals()
        self.work: queue.SimpleQueue[EngineOptions | tuple[ReplyRequest, Signals]] = (
            queue.SimpleQueue()
        )

    def read(self) -> None:
        """Until the parent closes its end, or says so."""
        with contextlib.suppress(OSError, ValueError):
            for line in self._stream:
                command = wire.decode_command(line)
                if isinstance(command, wire.Start):
                    self.work.put(command.options)
                elif isinstance(command, wire.Reply):
                    self._signals = Signals()
                    self.work.put((command.request, self._signals))
                elif isinstance(command, wire.Cancel):
                    self._signals.cancelled = True
                elif isinstance(command, wire.AnswerNow):
                    self._signals.answer_now = True
                else:
                    break
        # Not sys.exit: the main thread may be deep in MLX, and nothing here needs flushing.
        os._exit(0)


def main() -> None:
    """Serve one parent until it goes."""
    events_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # The parent handles Ctrl+C and a closed terminal, and ends us, or its end of the pipe does; a
    # terminal sends both to the whole group.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
    )
    outlet, inlet = Outlet(events_out), Inlet(sys.stdin.buffer)
    threading.Thread(target=inlet.read, daemon=True).start()
    threading.Thread(target=outlet.beat, daemon=True).start()

    openblas.preload()  # before anything imports MLX
    try:
        from minicpm5_mac.engine.engine import LocalEngine  # after the threads: it takes seconds
    except Exception as error:
        log.exception("the engine cannot be imported")
        text = f"The engine cannot be loaded: {type(error).__name__}: {error}"
        outlet.send(ModelFailed("error", text, "Install minicpm5-mac again."))
        # Not a return: a daemon thread holds standard input, and Python's own way out aborts.
        os._exit(1)

    engine: LocalEngine | None = None
    while True:
        work = inlet.work.get()
        outlet.busy(True)
        if isinstance(work, EngineOptions):
            engine = LocalEngine(work)
            stream = engine.start()
        elif engine is not None:
            stream = engine.reply(work[0], work[1])
        else:
            stream = iter([ModelFailed("error", "No model was started.")])
        for event in stream:
            outlet.send(event)
            outlet.busy(True)
        outlet.busy(False)


if __name__ == "__main__":
    main()
