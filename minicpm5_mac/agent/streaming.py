"""One reply from the engine to the screen, recorded on its way, with a sure end."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from minicpm5_mac.agent.recording import ReplyRecorder
from minicpm5_mac.engine.interface import Engine
from minicpm5_mac.events import Event, ReplyEnd
from minicpm5_mac.request import ReplyRequest

log = logging.getLogger(__name__)


def stream_reply(
    engine: Engine,
    recorder: ReplyRecorder,
    request: ReplyRequest,
    cancelled: threading.Event,
) -> Iterator[Event]:
    """The engine's events and the recorder's; the last one is always exactly one ReplyEnd.

    cancelled: set by whoever calls `engine.cancel`, which may come before the engine listens.
    An engine that raises, or ends without a word, gives ReplyEnd("failed", "error"); in a reply
    that was cancelled before, ReplyEnd("cancelled"): whoever leaves cancels, then ends the engine.
    When the iterator is left early, the engine is stopped and what it still says is recorded.
    """
    if cancelled.is_set():
        yield from _finish(recorder, ReplyEnd("cancelled", "cancelled"))
        return
    end: ReplyEnd | None = None
    told = False
    events = engine.reply(request)
    try:
        for event in events:
            if cancelled.is_set() and not told:
                told = True
                engine.cancel()
            if end is not None:
                continue  # the engine is only left to come to its end
            if isinstance(event, ReplyEnd):
                end = event
                continue
            yield from recorder.record(event)
            yield event
    except Exception as error:
        log.exception("the engine raised during a reply")
        end = ReplyEnd("failed", "error", detail=f"{type(error).__name__}: {error}")
    except BaseException:
        recorder.finish(_stop(engine, events, recorder) if end is None else end)
        raise
    if end is None:
        end = ReplyEnd("failed", "error", detail="The engine ended the reply without a word.")
    if cancelled.is_set() and (end.finish, end.cause) == ("failed", "error"):
        end = ReplyEnd("cancelled", "cancelled", end.usage, end.ids)
    yield from _finish(recorder, end)


def _finish(recorder: ReplyRecorder, end: ReplyEnd) -> Iterator[Event]:
    yield from recorder.finish(end)
    yield end


def _stop(engine: Engine, events: Iterator[Event], recorder: ReplyRecorder) -> ReplyEnd:
    with contextlib.suppress(Exception):
        engine.cancel()
        for event in events:
            if isinstance(event, ReplyEnd):
                return event
            recorder.record(event)
    return ReplyEnd("cancelled", "cancelled")
