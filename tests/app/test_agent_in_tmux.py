"""An agent session in a terminal: the model writes its calls, the user's keys allow them.

And `kill -9` of the app while a command runs: nothing of it lives, and the conversation is whole.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import agent_app
import psutil
import pytest
from tiny.prompts import prompt

from minicpm5_mac.agent.unfinished_calls import INTERRUPTED, unfinished
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.locations import data_dir

PATIENCE = 90.0
WRONG, RIGHT = 'print("Helo, world!")\n', 'print("Hello, world!")\n'
STORY = prompt("fix_greeting")
TASK = STORY.messages()[-1]["content"]


class Terminal:
    """The app in tmux, as a user has it."""

    def __init__(self, workspace: Path, model: Path, *conversation: str) -> None:
        self._socket = f"minicpm5-{uuid.uuid4().hex[:8]}"
        # The server's environment is the one of its first client.
        path = os.pathsep.join(filter(None, sys.path))
        command = [sys.executable, agent_app.__file__, str(workspace), str(model), *conversation]
        self._tmux("new-session", "-d", "-x", "100", "-y", "40", *command, PYTHONPATH=path)
        self.pid = int(self._tmux("list-panes", "-F", "#{pane_pid}"))

    def _tmux(self, *arguments: str, **environment: str) -> str:
        return subprocess.run(
            ["tmux", "-L", self._socket, "-f", os.devnull, *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def shows(self, *words: str) -> str:
        """Wait until all are on the screen."""
        return until(lambda: all(word in self.screen() for word in words), self.screen, words)

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False
        )


def until(
    happened: Callable[[], object], seen: Callable[[], str] = lambda: "", what: object = ""
) -> str:
    end = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > end:
            pytest.fail(f"it did not happen: {what}\n{seen()}")
        time.sleep(0.1)
    return seen()


@pytest.fixture
def terminal(workspace: Path, sandbox: None, tiny_model: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("runs the app in a terminal: apt install tmux (brew install tmux)")
    (workspace / "hello.txt").write_text(WRONG)
    made = Terminal(workspace, tiny_model)
    yield made
    made.close()


def ask_until_a_command_waits(terminal: Terminal, workspace: Path) -> None:
    terminal.shows("tools: asks", "tiny-minicpm5", "thinking on")
    terminal.keys(TASK, "Enter")
    terminal.shows("May this run?", "edit_file: change", '+print("Hello, world!")')
    assert (workspace / "hello.txt").read_text() == WRONG
    time.sleep(1)  # the dialog takes no key at once, for somebody may be typing
    terminal.keys("y")
    terminal.shows("May this run?", "cat hello.txt")
    assert (workspace / "hello.txt").read_text() == RIGHT
    time.sleep(1)


def test_read_edit_run_answer_and_take_back(terminal: Terminal, workspace: Path):
    ask_until_a_command_waits(terminal, workspace)
    terminal.keys("y")
    terminal.shows(STORY.replies[-1].content, "changed: hello.txt")
    terminal.keys("F7")
    terminal.shows('+print("Helo, world!")')
    terminal.keys("u")
    terminal.shows("Taken back: 1 file.")
    assert (workspace / "hello.txt").read_text() == WRONG


def test_killed_in_mid_command(terminal: Terminal, workspace: Path, tiny_model: Path):
    ask_until_a_command_waits(terminal, workspace)
    # The command is `cat` of the file, which is a named pipe by now: it does not end.
    path = workspace / "hello.txt"
    path.unlink()
    os.mkfifo(path)
    terminal.keys("y")
    writer = until_opened(path)
    family = [psutil.Process(terminal.pid), *psutil.Process(terminal.pid).children(recursive=True)]
    assert any("cat" in process.name() for process in everything_of(path))

    os.kill(terminal.pid, signal.SIGKILL)
    time.sleep(1)
    assert [process for process in family if lives(process)] == []
    assert everything_of(path) == []
    os.close(writer)

    with ConversationStore(data_dir()) as store:
        (conversation,) = store.list()
        messages = store.messages.path(conversation.id, conversation.head)
    said = [(message.role, message.content) for message in messages]
    assert said[0] == ("user", TASK)
    assert [call.name for call in unfinished(messages)] == ["run_command"]
    assert said[-1] == ("assistant", STORY.replies[2].content)

    # Opened again, all of it is there; what goes on is told that the command was interrupted.
    again = Terminal(workspace, tiny_model, conversation.id)
    try:
        again.shows("Let me check.", "cat hello.txt", "The last reply broke off")
        again.keys("C-g")
        until(lambda: INTERRUPTED in results(conversation.id), again.screen, "going on")
    finally:
        again.close()


def results(conversation: str) -> list[str]:
    """What the model was told of its calls."""
    with ConversationStore(data_dir()) as store:
        found = next(one for one in store.list() if one.id == conversation)
        messages = store.messages.path(conversation, found.head)
    return [message.content for message in messages if message.role == "tool"]


def until_opened(path: Path) -> int:
    """The writing end of a named pipe, once somebody reads it."""
    opened: list[int] = []

    def tried() -> bool:
        try:
            opened.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    until(tried, what="the command reads the pipe")
    return opened[0]


def everything_of(path: Path) -> list[psutil.Process]:
    """All processes that have the pipe of the workspace open for reading, or name it."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.pid != os.getpid()
        and process.info["cmdline"]
        and path.name in process.info["cmdline"]
        and lives(process)
    ]


def lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
