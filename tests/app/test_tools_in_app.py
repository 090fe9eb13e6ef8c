"""Tools in the running app, with the tiny model that really writes its calls."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from pathlib import Path

import pytest
from app_driver import idle, screen_text, until
from textual.pilot import Pilot
from tiny.prompts import prompt

from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.reply_state import Phase
from minicpm5_mac.app.screens.approval import Approval
from minicpm5_mac.app.screens.changes import Changes
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.app.transcript import AssistantMessage
from minicpm5_mac.app.transcript.shown_text import ShownText
from minicpm5_mac.sandbox.policy import Policy

SIZE = (100, 40)
WRONG, RIGHT = 'print("Helo, world!")\n', 'print("Hello, world!")\n'
TASK = prompt("fix_greeting").messages()[-1]["content"]


@pytest.fixture
def agent(options: AppOptions, toolbox: Toolbox) -> ChatApp:
    """The app as `minicpm5-mac agent` starts it, in a folder with the file of the task."""
    (toolbox.policy.workspace / "hello.txt").write_text(WRONG)
    return ChatApp(dataclasses.replace(options, toolbox=toolbox))


async def send(pilot: Pilot[None], app: ChatApp, text: str) -> None:
    await idle(pilot)
    app.chat.composer.load(text)
    await pilot.press("enter")


async def asked(pilot: Pilot[None], app: ChatApp, tool: str) -> Approval:
    """The dialog about a call of that tool, once it takes answers."""

    def there() -> bool:
        dialog = app.screen
        return isinstance(dialog, Approval) and dialog.armed and dialog.wanted.call.name == tool

    await until(pilot, there, f"asked about {tool}")
    assert isinstance(app.screen, Approval)
    return app.screen


def outcomes(app: ChatApp) -> list[tuple[str, str]]:
    views = [view for view in app.chat.transcript.messages if isinstance(view, AssistantMessage)]
    results = [run.result for view in views for run in view.runs]
    return [(result.name, result.outcome) for result in results if result]


async def test_read_edit_run_answer_take_back_and_bring_again(agent: ChatApp, toolbox: Toolbox):
    path = toolbox.policy.workspace / "hello.txt"
    async with agent.run_test(size=SIZE) as pilot:
        await send(pilot, agent, TASK)
        await asked(pilot, agent, "edit_file")
        shown = screen_text(agent)
        assert '-print("Helo, world!")' in shown
        assert '+print("Hello, world!")' in shown
        assert path.read_text() == WRONG
        await pilot.press("y")
        command = await asked(pilot, agent, "run_command")
        assert command.wanted.shown == "cat hello.txt"
        await pilot.press("y")
        await idle(pilot)
        assert path.read_text() == RIGHT
        reply = agent.chat.transcript.last_reply
        assert reply is not None
        assert reply.text == prompt("fix_greeting").replies[-1].content
        expected = [("read_file", "ok"), ("edit_file", "ok"), ("run_command", "ok")]
        assert outcomes(agent) == expected
        await until(pilot, lambda: "changed: hello.txt" in screen_text(agent))

        await pilot.press("f7")
        await until(pilot, lambda: isinstance(agent.screen, Changes))
        preview = agent.screen.query_one(ShownText)
        await until(pilot, lambda: '+print("Helo, world!")' in preview.text)
        await pilot.press("u")
        await until(pilot, lambda: path.read_text() == WRONG)
        await until(pilot, lambda: "Taken back: 1 file." in screen_text(agent))
        await until(pilot, lambda: '-print("Helo, world!")' in preview.text)
        await pilot.press("u")
        await until(pilot, lambda: path.read_text() == RIGHT)
        await pilot.press("escape")

        # What was edited by hand since is not taken back, and the preview knows.
        path.write_text("my own\n")
        await pilot.press("f7")
        await until(
            pilot, lambda: "Left as it is: hello.txt: it changed since" in screen_text(agent)
        )
        shown = screen_text(agent)
        assert "It cannot be taken back now." in shown
        assert "Taking it back does this" not in shown
        assert agent.screen.query_one(ShownText).text == ""
        await pilot.press("u")
        await until(pilot, lambda: "Taken back: 0 files." in screen_text(agent))
        assert path.read_text() == "my own\n"
        await pilot.press("escape")
        path.write_text(RIGHT)

        # What is stored shows the same turn when it is opened again.
        before = [entry.results for entry in agent.chat.transcript.entries() if entry.message]
        await agent.chat.show_messages(agent.live.session.messages())
        after = [entry.results for entry in agent.chat.transcript.entries() if entry.message]
        assert after == before
        assert outcomes(agent) == expected
    agent.live.close()


@pytest.mark.parametrize(
    ("key", "word", "told"),
    [
        ("escape", "", "The user denied this call."),
        ("n", "", "The user denied this call."),
        ("w", "later", "Denied by the user: later"),
    ],
)
async def test_denied(agent: ChatApp, toolbox: Toolbox, key: str, word: str, told: str):
    async with agent.run_test(size=SIZE) as pilot:
        await send(pilot, agent, TASK)
        await asked(pilot, agent, "edit_file")
        await pilot.press(key)
        if word:
            await until(pilot, lambda: isinstance(agent.screen, Question))
            await pilot.press(*word, "enter")
        await until(pilot, lambda: ("edit_file", "denied") in outcomes(agent))
        agent.chat.action_stop()
        await idle(pilot)
        assert (toolbox.policy.workspace / "hello.txt").read_text() == WRONG
        results = [m.content for m in agent.live.session.messages() if m.role == "tool"]
        assert results[1].startswith(told)
    agent.live.close()


async def test_what_somebody_was_typing_approves_nothing(agent: ChatApp, toolbox: Toolbox):
    async with agent.run_test(size=SIZE) as pilot:
        await send(pilot, agent, TASK)
        agent.chat.composer.load("I was saying ")
        await until(pilot, lambda: isinstance(agent.screen, Approval))
        dialog = agent.screen
        assert isinstance(dialog, Approval)
        await pilot.press("y", "s", "enter", "f", "n")
        assert agent.screen is dialog
        assert agent.chat.draft == "I was saying ysfn"
        await until(pilot, lambda: "press tab" in screen_text(agent))
        await pilot.press("tab")
        assert dialog.armed
        await pilot.press("ctrl+c")  # ends the turn, and the dialog with it
        await until(pilot, lambda: agent.screen is agent.chat)
        await idle(pilot)
        assert ("edit_file", "cancelled") in outcomes(agent)
        assert (toolbox.policy.workspace / "hello.txt").read_text() == WRONG
        assert toolbox.approvals.rules == ()
    agent.live.close()


async def test_modes_are_shown_and_change_what_is_asked(agent: ChatApp, toolbox: Toolbox):
    async with agent.run_test(size=SIZE) as pilot:
        await idle(pilot)
        assert "tools: asks" in screen_text(agent)
        assert toolbox.policy.workspace.name in screen_text(agent)
        await pilot.press("f6")
        await until(pilot, lambda: "tools: accepts edits" in screen_text(agent))
        await send(pilot, agent, TASK)
        await asked(pilot, agent, "run_command")  # the edit ran unasked
        await pilot.press("f")
        await idle(pilot)
        assert outcomes(agent)[-1] == ("run_command", "ok")
        again = Toolbox(toolbox.policy)
        assert [rule.exact for rule in again.approvals.rules] == ["cat hello.txt"]
        await pilot.press("f6")
        await until(pilot, lambda: "tools: read only" in screen_text(agent))
        assert toolbox.mode == "read-only"
    agent.live.close()


async def test_a_running_command_shows_its_output_and_ends_alone(agent: ChatApp, toolbox: Toolbox):
    """`cat` of the task's file does not end: the file is a named pipe by then."""
    toolbox.mode = "accept-edits"
    async with agent.run_test(size=SIZE) as pilot:
        await send(pilot, agent, TASK)
        await asked(pilot, agent, "run_command")
        path = toolbox.policy.workspace / "hello.txt"
        path.unlink()
        os.mkfifo(path)
        await pilot.press("y")
        await until(pilot, lambda: agent.chat.reply.phase is Phase.RUNNING)
        writer = await asyncio.to_thread(os.open, path, os.O_WRONLY)
        os.write(writer, b"begun\n")
        await until(pilot, lambda: "    begun" in screen_text(agent))
        await pilot.press("f10")
        await idle(pilot)
        os.close(writer)
        assert outcomes(agent)[-1] == ("run_command", "cancelled")
        told = [m.content for m in agent.live.session.messages() if m.role == "tool"][-1]
        assert told.startswith("begun\n")
    agent.live.close()


async def test_a_folder_is_granted_in_mid_session(agent: ChatApp, toolbox: Toolbox, tmp_path: Path):
    further = tmp_path / "further"
    further.mkdir()
    async with agent.run_test(size=SIZE) as pilot:
        await send(pilot, agent, f"/grant {further}")
        await until(pilot, lambda: toolbox.policy.read == (further,))
        await send(pilot, agent, f"/grant write {further}")
        await until(pilot, lambda: toolbox.policy.write == (further,))
        assert toolbox.policy.read == ()
        await send(pilot, agent, "/grant /proc")
        await until(pilot, lambda: any("/proc" in n.message for n in agent._notifications))
        assert toolbox.policy.write == (further,)
    agent.live.close()


@pytest.mark.parametrize("confined", [True, False], ids=["tools off", "sandbox off"])
async def test_the_danger_is_told_all_the_time(
    options: AppOptions, workspace: Path, monkeypatch: pytest.MonkeyPatch, confined: bool
):
    if sys.platform != "linux":
        pytest.skip("bubblewrap is taken away; macOS has no program of that kind to take")
    toolbox = Toolbox(Policy(workspace), confined=confined)
    if confined:
        # There is no sandbox where its program is not.
        monkeypatch.setattr("minicpm5_mac.sandbox.linux.BWRAP_PATH", "/nowhere")
    app = ChatApp(dataclasses.replace(options, toolbox=toolbox))
    async with app.run_test(size=SIZE) as pilot:
        words = "Tools are off" if confined else "The sandbox is off for this session"
        await until(pilot, lambda: words in screen_text(app))
        await idle(pilot)
        assert words in screen_text(app)
    app.live.close()
