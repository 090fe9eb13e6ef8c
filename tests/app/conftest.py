"""The app as a user has it, headless, with a real engine that one file's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from story_tools import StoryTools
from tried_sandbox import sandbox, sandbox_cache, workspace  # noqa: F401

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess
from minicpm5_mac.events import EngineStopped, Event
from minicpm5_mac.request import ReplyRequest, Sampling
from minicpm5_mac.sandbox.policy import Policy


class KeptEngine:
    """A started engine that outlives the apps that use it."""

    def __init__(self, engine: EngineProcess, started: list[Event]) -> None:
        self._engine = engine
        self._started = started

    def start(self) -> Iterator[Event]:
        yield from self._started

    def reply(self, request: ReplyRequest) -> Iterator[Event]:
        yield from self._engine.reply(request)

    def cancel(self) -> None:
        self._engine.cancel()

    def answer_now(self) -> None:
        self._engine.answer_now()

    def stopped(self) -> EngineStopped | None:
        return self._engine.stopped()

    def close(self) -> None:
        self._engine.cancel()


@pytest.fixture(scope="module")
def context() -> int | None:
    """Tokens of the engine's context; a file of tests may have its own."""
    return None


@pytest.fixture(scope="module")
def engine(
    tiny_model: Path, context: int | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptEngine]:
    """The tiny model in a process of its own, loaded once a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINICPM5_MAC_HOME", str(tmp_path_factory.mktemp("engine")))
        process = EngineProcess(EngineOptions(str(tiny_model), context=context))
        started = list(process.start())
    yield KeptEngine(process, started)
    process.close()


@pytest.fixture
def options(engine: KeptEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppOptions:
    """Greedy replies of at most 300 tokens; files are looked for in a folder of the test's own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    settings = SessionSettings("tiny", sampling=Sampling(temperature=0.0), max_tokens=300)
    return AppOptions(settings, lambda name: engine, given=frozenset({"model"}), theme="dark")


@pytest.fixture
def toolbox(workspace: Path, sandbox: None) -> StoryTools:  # noqa: F811
    """The tools of a session in a folder of the test's own, in the real sandbox."""
    return StoryTools(Policy(workspace))
