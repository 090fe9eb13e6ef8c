"""When the model process dies: the user is told, nothing is lost, one key starts it again."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import msgspec
import pytest
from app_driver import idle, say, screen_text, until

from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.reply_state import Phase
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess

QUESTION = "What is the capital of France?"


@pytest.fixture
def engines(options: AppOptions, tiny_model: Path) -> tuple[AppOptions, list[EngineProcess]]:
    """Options whose engines are the app's own, and those it made."""
    made: list[EngineProcess] = []

    def make(name: str) -> EngineProcess:
        made.append(EngineProcess(EngineOptions(str(tiny_model))))
        return made[-1]

    return dataclasses.replace(options, make_engine=make), made


async def test_the_model_dies_in_a_reply_and_then_between_two(
    engines: tuple[AppOptions, list[EngineProcess]],
):
    options, made = engines
    # Without a limit of tokens: the model has to think until it is killed.
    settings = msgspec.structs.replace(options.settings, max_tokens=None)
    app = ChatApp(dataclasses.replace(options, settings=settings))
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, QUESTION)
        app.chat.composer.load("Think for ever.")
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.reply.phase is Phase.THINKING)
        app.chat.composer.load("my draft")
        kill(made[-1])
        await until(pilot, lambda: app.model.stopped)
        await until(pilot, lambda: not app.chat.reply.running)
        await until(pilot, lambda: "The model stopped unexpectedly" in screen_text(app))
        reply = app.chat.transcript.last_reply
        assert reply is not None
        await until(pilot, lambda: reply.ended)
        stored = app.live.session.messages()
        assert [message.content for message in stored[:3]] == [
            QUESTION,
            "Paris.",
            "Think for ever.",
        ]
        assert stored[3].reasoning
        assert app.chat.draft == "my draft"
        await pilot.press("enter")  # with no model the message stays
        assert app.chat.draft == "my draft"

        await pilot.press("ctrl+r")
        await idle(pilot)
        assert len(made) == 2
        await until(pilot, lambda: "The last reply broke off" in screen_text(app))
        kill(made[-1])  # while nothing runs
        await until(pilot, lambda: app.model.stopped)
        await pilot.press("f5")
        await idle(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.live.session.messages()[-2].content == "my draft")
        await idle(pilot)
    app.live.close()
    assert made[-1].pid is None


def kill(engine: EngineProcess) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)


async def test_a_model_that_is_not_there_is_named_and_nothing_spins(options: AppOptions):
    def make(name: str) -> EngineProcess:
        return EngineProcess(EngineOptions("/no/such/model"))

    app = ChatApp(dataclasses.replace(options, make_engine=make))
    async with app.run_test(size=(100, 30)) as pilot:
        app.chat.composer.load(QUESTION)
        await pilot.press("enter")  # sent too early: it comes back
        await until(pilot, lambda: app.model.failed is not None)
        await until(pilot, lambda: app.chat.draft == QUESTION)
        await until(pilot, lambda: "/no/such/model" in screen_text(app))
        assert not app.model.starting
        assert not app.chat.reply.running

        def said() -> str:  # without the frame between two lines
            return " ".join(screen_text(app).replace("█", " ").split())

        await until(pilot, lambda: "f2 chooses a model" in said())
    app.live.close()


async def test_a_name_without_a_model_leaves_the_loaded_one_as_it_is(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=(100, 30)) as pilot:
        await idle(pilot)
        for name in ("nosuch", "./no-folder", "no/such/folder", "~/x y"):
            app.chat.composer.load(f"/model {name}")
            await pilot.press("enter")
            await until(pilot, lambda name=name: f"no model '{name}'" in toasts(app))
            assert app.model.ready is not None
            assert app.live.settings.model == "tiny"
        await say(pilot, QUESTION)


def toasts(app: ChatApp) -> str:
    return "\n".join(notice.message for notice in app._notifications)
