"""The keys: each does one thing, the help lists them all, and no two mean the same."""

from __future__ import annotations

from collections import Counter

import pytest
from app_driver import idle, screen_text, until
from textual.binding import Binding
from textual.dom import DOMNode

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.key_help import spelled
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.screens.chat import ChatScreen
from minicpm5_mac.app.screens.help import Help
from minicpm5_mac.app.screens.tools import ToolsScreen
from minicpm5_mac.app.transcript import AssistantMessage, UserMessage
from minicpm5_mac.app.widgets.composer import Composer

CHAT = {
    "escape": "step_back",
    "ctrl+t": "answer_now",
    "ctrl+r": "again",
    "ctrl+g": "continue_reply",
    "f9": "copy",
    "alt+c": "copy",
    "ctrl+n": "new_conversation",
    "ctrl+o": "conversations",
    "f2": "app.models",
    "f3": "sampling",
    "f5": "app.restart_model",
    "left_square_bracket": "branch(-1)",
    "right_square_bracket": "branch(1)",
}
TOOLS = {"f6": "mode", "f7": "changes", "f10": "cancel_call"}
APP = {
    "ctrl+c": "interrupt",
    "ctrl+q": "leave",
    "f1": "help",
    "f8": "log",
    "ctrl+p": "command_palette",
}
COMPOSER = {
    "enter": "submit",
    "shift+enter": "newline",
    "ctrl+j": "newline",
    "alt+enter": "newline",
    "up": "up",
    "down": "down",
    "tab": "complete",
    "escape": "dismiss",
    "pageup": "page(-1)",
    "pagedown": "page(1)",
    "f6": "screen.mode",
    "f7": "screen.changes",
}


def declared(owner: type[DOMNode]) -> dict[str, str]:
    made = Binding.make_bindings(owner.__dict__["BINDINGS"])
    return {binding.key: binding.action for binding in made}


@pytest.mark.parametrize(
    ("owner", "keys"),
    [(ChatScreen, CHAT), (ToolsScreen, TOOLS), (ChatApp, APP), (Composer, COMPOSER)],
)
def test_the_table_of_keys(owner: type[DOMNode], keys: dict[str, str]):
    assert declared(owner) == keys


@pytest.mark.parametrize(
    "keys", [set(CHAT) | set(APP), set(APP) | set(COMPOSER)], ids=["chat", "composer"]
)
def test_the_app_takes_no_key_that_a_screen_wants(keys: set[str]):
    assert len(keys) in (len(CHAT) + len(APP), len(COMPOSER) + len(APP))


def test_no_key_of_the_chat_is_a_letter_that_someone_types():
    typed = [key for key in {**CHAT, **APP} if len(key) == 1]
    assert typed == []


def test_keys_of_messages_do_not_hide_each_other():
    for view in (UserMessage("", ""), AssistantMessage()):
        counted = Counter(
            (key, binding.action)
            for key, bindings in view._bindings.key_to_bindings.items()
            for binding in bindings
        )
        keys = Counter(key for key, _ in counted)
        assert [key for key, count in keys.items() if count > 1] == []


async def test_the_help_lists_every_key_and_every_command(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=(100, 200)) as pilot:
        await idle(pilot)
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help))
        await until(pilot, lambda: "/quit" in screen_text(app))
        shown = " ".join(screen_text(app).replace("│", " ").split())  # long lines wrap
        for key in [*CHAT, *TOOLS, *APP, *COMPOSER]:
            assert spelled(key) in shown, key
        for owner in (ChatApp, ChatScreen, Composer, UserMessage, AssistantMessage):
            for binding in Binding.make_bindings(owner.__dict__["BINDINGS"]):
                assert binding.description in shown, binding
        for command in slash_commands.COMMANDS:
            assert f"/{command.name}" in shown
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_every_command_is_an_action_of_the_chat_or_the_app(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test() as pilot:
        await idle(pilot)
        for command in slash_commands.COMMANDS:
            name = f"action_{command.action}"
            assert callable(getattr(app.chat, name, None) or getattr(app, name, None)), name
