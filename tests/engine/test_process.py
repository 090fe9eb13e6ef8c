"""The model process: it starts, crashes, hangs and ends cleanly, whoever goes first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny.prompts import prompt

from minicpm5_mac import locations
from minicpm5_mac.engine import process
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess
from minicpm5_mac.events import (
    Answer,
    EngineStopped,
    ModelFailed,
    ModelReady,
    PromptProgress,
    Reasoning,
    ReplyEnd,
)
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest, Sampling


def request(name: str = "endless_thinking", **more) -> ReplyRequest:
    messages = tuple(Message(m["role"], m["content"]) for m in prompt(name).messages())
    return ReplyRequest(messages, sampling=Sampling(temperature=0.0), **more)


@pytest.fixture(scope="module")
def engine(tiny_model: Path, tmp_path_factory) -> Iterator[EngineProcess]:
    engine = EngineProcess(EngineOptions(str(tiny_model)))
    yield engine
    engine.close()


@pytest.fixture
def running(engine: EngineProcess) -> EngineProcess:
    """A model process that is ready; started again where the test before ended it."""
    if engine.pid is None or not alive(engine.pid):
        *_, ready = engine.start()
        assert isinstance(ready, ModelReady), ready
    return engine


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    except OSError:  # no /proc
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"


def gone(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def test_it_says_the_same_as_the_engine_in_this_process(running):
    events = list(running.reply(request("capital", max_tokens=60)))
    assert isinstance(events[-1], ReplyEnd)
    assert any(isinstance(e, Reasoning | Answer) for e in events)
    assert events[-1].ids is not None


def test_cancel_keeps_what_was_said(running):
    events = []
    for event in running.reply(request()):
        events.append(event)
        if sum(isinstance(e, Reasoning) for e in events) == 3:
            running.cancel()
    assert events[-1].finish == "cancelled"
    assert events[-1].usage.generated_tokens < 300


def test_cancel_reaches_a_long_prefill(running):
    long = ReplyRequest((Message("user", "What is the capital of France? " * 600),))
    events = []
    for event in running.reply(long):
        events.append(event)
        if isinstance(event, PromptProgress):
            running.cancel()
    end = events[-1]
    assert end.finish == "cancelled"
    assert end.usage.generated_tokens == 0
    progress = [e for e in events if isinstance(e, PromptProgress)]
    assert progress[-1].done < progress[-1].total


def test_a_cancel_before_the_first_event_counts(running):
    stream = running.reply(request())
    first = next(stream)
    running.cancel()
    assert not isinstance(first, ReplyEnd)
    assert list(stream)[-1].finish == "cancelled"


def test_leaving_a_reply_cancels_it_and_the_next_one_works(running):
    stream = running.reply(request())
    next(stream)
    stream.close()
    events = list(running.reply(request("capital", max_tokens=5)))
    assert [type(e) for e in events].count(ReplyEnd) == 1


def test_a_crash_costs_a_message_and_a_start_brings_the_model_back(running):
    events = []
    for event in running.reply(request()):
        events.append(event)
        if isinstance(event, Reasoning) and running.pid is not None:
            os.kill(running.pid, signal.SIGKILL)
    stopped, end = events[-2:]
    assert isinstance(stopped, EngineStopped)
    assert stopped.reason == "crashed"
    assert "killed" in stopped.detail
    assert (end.finish, end.cause) == ("failed", "error")
    assert running.pid is None

    events = list(running.reply(request()))
    assert isinstance(events[-1], ReplyEnd)  # without a process: said at once, no hang

    *_, ready = running.start()
    assert isinstance(ready, ModelReady)
    *_, end = running.reply(request("capital", max_tokens=5))
    assert end.finish in ("complete", "truncated")


def test_a_process_without_a_sign_of_life_is_ended(running, monkeypatch):
    monkeypatch.setattr(process, "HUNG_SECONDS", 2.0)
    pid = running.pid
    events = []
    for event in running.reply(request()):
        events.append(event)
        if isinstance(event, Reasoning) and alive(pid):
            os.kill(pid, signal.SIGSTOP)
    assert isinstance(events[-2], EngineStopped)
    assert events[-2].reason == "hung"
    assert gone(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_a_terminal_sends_to_all_is_the_parents_to_act_on(running, number):
    sent = 0
    for event in running.reply(request("capital", max_tokens=40)):
        if isinstance(event, Reasoning | Answer):
            os.kill(running.pid, number)
            sent += 1
    assert sent
    assert isinstance(event, ReplyEnd)
    assert event.cause != "error"


def test_cancel_never_blocks_on_a_stopped_process(running):
    pid = running.pid
    os.kill(pid, signal.SIGSTOP)
    started = threading.Event()

    def press() -> None:
        for _ in range(2000):
            running.cancel()
        started.set()

    threading.Thread(target=press, daemon=True).start()
    assert started.wait(5)
    os.kill(pid, signal.SIGCONT)


def test_closing_ends_the_process(running):
    pid = running.pid
    running.close()
    running.close()
    assert gone(pid)


PARENT = """
import sys
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess
from minicpm5_mac.messages import Message
from minicpm5_mac.request import ReplyRequest
engine = EngineProcess(EngineOptions(sys.argv[1]))
print([*engine.start()][-1].name, engine.pid, flush=True)
for event in engine.reply(ReplyRequest((Message("user", sys.argv[2]),))):
    print("event", flush=True)
"""


def test_no_orphan_keeps_the_model_when_the_parent_is_killed(tiny_model):
    question = prompt("endless_thinking").messages()[-1]["content"]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tiny_model), question],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline().split()[-1])
    assert parent.stdout.readline() == "event\n"
    assert alive(pid)
    parent.kill()
    parent.wait()
    assert gone(pid)
    parent.stdout.close()


def test_nothing_is_imported_from_the_folder_the_user_works_in(tiny_model, tmp_path, monkeypatch):
    for name in ("mlx", "msgspec", "json", "tokenizers"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the workspace')\n")
    monkeypatch.chdir(tmp_path)
    engine = EngineProcess(EngineOptions(str(tiny_model)))
    *_, ready = engine.start()
    engine.close()
    assert isinstance(ready, ModelReady)


def test_a_model_that_cannot_be_had_is_said_with_advice_and_no_process_stays():
    engine = EngineProcess(EngineOptions("no-such-model"))
    *_, failed = engine.start()
    assert isinstance(failed, ModelFailed)
    assert failed.reason == "not_found"
    assert failed.advice
    pid = engine.pid
    engine.close()
    assert pid is None or gone(pid)


def test_a_death_while_loading_is_said(monkeypatch, tiny_model):
    engine = EngineProcess(EngineOptions(str(tiny_model)))
    events = []
    for event in engine.start():
        events.append(event)
        if engine.pid is not None and alive(engine.pid):
            os.kill(engine.pid, signal.SIGKILL)
    assert isinstance(events[-1], ModelFailed)
    assert "killed" in events[-1].advice
    assert (locations.log_dir() / "engine.log").exists()
