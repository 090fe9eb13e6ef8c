"""What can be done to conversations, settings, the clipboard and the draft."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from app_driver import idle, say, screen_text, until
from textual import events
from textual.command import CommandPalette
from textual.widgets import Input, OptionList

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.screens.choice import Choice
from minicpm5_mac.app.screens.conversations import Conversations
from minicpm5_mac.app.screens.editing import Editing
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.app.screens.sampling import SamplingScreen
from minicpm5_mac.conversations.store import ConversationStore

QUESTION = "What is the capital of France?"
SIZE = (100, 30)


async def command(pilot, text: str) -> None:
    pilot.app.chat.composer.load(text)
    await pilot.press("enter")


def on_top(app: ChatApp, kind: type):
    return lambda: isinstance(app.screen, kind)


# Conversations ------------------------------------------------------------------------------------


async def test_rename_search_open_and_delete(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        await command(pilot, "/rename Paris and more")
        await until(pilot, lambda: app.chat.title_shown == "Paris and more")
        first = app.live.conversation
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.live.conversation is None and not app.chat.draft)
        await say(pilot, "My name is Ada.")

        await pilot.press("ctrl+o")
        await until(pilot, on_top(app, Conversations))
        await pilot.press(*"france")
        rows = app.screen.query_one(OptionList)
        await until(pilot, lambda: rows.option_count == 1 and "Paris and more" in screen_text(app))
        await pilot.press("ctrl+r")
        await until(pilot, on_top(app, Question))
        app.screen.query_one(Input).value = "Geography"
        await pilot.press("enter")
        await until(pilot, lambda: app.live.store.get(first or "").title == "Geography")
        await until(pilot, on_top(app, Conversations))
        await pilot.press("enter")
        await until(pilot, lambda: app.live.conversation == first)
        await until(pilot, lambda: [m.text for m in app.chat.transcript.messages][:1] == [QUESTION])

        await pilot.press("ctrl+o")
        await until(pilot, on_top(app, Conversations))
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 2)
        await until(pilot, lambda: "Geography" in screen_text(app))
        listed = app.live.store.list(limit=10)
        app.screen.query_one(OptionList).highlighted = [c.id for c in listed].index(first or "")
        await pilot.press("ctrl+d")
        await until(pilot, on_top(app, Choice))
        await pilot.press("enter")  # keeping it is what Enter does
        await until(pilot, on_top(app, Conversations))
        assert len(app.live.store.list(limit=10)) == 2
        await pilot.press("ctrl+d")
        await until(pilot, on_top(app, Choice))
        await pilot.press("d")
        await until(pilot, lambda: len(app.live.store.list(limit=10)) == 1)
        await until(pilot, on_top(app, Conversations))
        await pilot.press("escape")
        await until(pilot, lambda: app.live.conversation is None)  # what is gone is not shown


async def test_resume_searches_for_the_words_behind_it(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        await command(pilot, "/resume nosuch")
        await until(pilot, on_top(app, Conversations))
        await until(pilot, lambda: "Nothing contains “nosuch”" in screen_text(app))
        assert app.screen.query_one(Input).value == "nosuch"
        await pilot.press("X")  # typed behind the words, not over them
        assert app.screen.query_one(Input).value == "nosuchX"


async def test_enter_on_a_bare_slash_runs_nothing(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        conversation = app.live.conversation
        await pilot.press("slash", "enter")
        await pilot.pause(0.2)
        assert app.chat.draft == "/"
        assert app.live.conversation == conversation
        await pilot.press("down", "down", "up", "enter")  # an arrow is a choice
        await until(pilot, lambda: app.chat.draft == "/resume ")


async def test_export_into_a_folder_says_so_at_once(options: AppOptions):
    app = ChatApp(options)
    Path("notes").mkdir()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        await command(pilot, "/export notes")
        await until(pilot, lambda: "notes is a folder" in screen_text(app))
        assert app.screen is app.chat


async def test_export_asks_before_it_replaces_a_file(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        await command(pilot, "/export talk.json")
        await until(pilot, lambda: Path("talk.json").exists() and Path("talk.json").stat().st_size)
        assert QUESTION in json.dumps(json.loads(Path("talk.json").read_text(encoding="utf-8")))
        Path("mine.md").write_text("mine", encoding="utf-8")
        await command(pilot, "/export mine.md")
        await until(pilot, on_top(app, Choice))
        await pilot.press("k")
        await until(pilot, lambda: app.screen is app.chat)
        assert Path("mine.md").read_text(encoding="utf-8") == "mine"
        await command(pilot, "/export no/such/folder.md")
        await until(pilot, lambda: "cannot be written" in screen_text(app))


# The draft ----------------------------------------------------------------------------------------


async def test_a_draft_outlives_the_app_without_a_goodbye(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        conversation = app.live.conversation
        await pilot.press(*"half a thought")
        with ConversationStore() as other:
            await until(pilot, lambda: other.draft(conversation) == "half a thought")
    again = ChatApp(dataclasses.replace(options, conversation=conversation))
    async with again.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: again.chat.draft == "half a thought")
        assert again.chat.transcript.messages[0].text == QUESTION


async def test_ctrl_c_clears_the_draft_into_the_history_and_leaves_at_the_second_press(
    options: AppOptions,
):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        await pilot.press(*"precious", "ctrl+c")
        assert app.chat.draft == ""
        await pilot.press("up")
        assert app.chat.draft == "precious"
        await pilot.press("ctrl+c", "ctrl+c")
        await pilot.pause()
        assert app.is_running
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)


async def test_a_paste_of_many_lines_is_one_piece_and_is_not_sent(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        text = "def f():\n\n    return '中文 👩‍💻'\n" * 2000
        app.chat.composer.post_message(events.Paste(text.replace("\n", "\r\n")))
        await until(pilot, lambda: app.chat.draft == text)
        await pilot.press("f4")
        await pilot.pause()
        assert app.chat.composer.size.height > 20  # all of it can be looked at
        await pilot.press("f4", "ctrl+z")
        assert app.chat.draft == ""
        assert app.live.conversation is None


async def test_keys_that_come_in_one_breath_act_in_their_order(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        for key in [*"/rename", "space", *"Quick", "enter", *"next"]:
            name = "slash" if key == "/" else key
            char = " " if key == "space" else key if len(key) == 1 else None
            app.chat.composer.post_message(events.Key(name, char))
        await until(pilot, lambda: app.chat.title_shown == "Quick")
        assert app.chat.draft == "next"


async def test_typing_goes_to_the_composer_wherever_the_focus_was(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        app.chat.set_focus(None)
        await pilot.press("h", "i")
        assert app.chat.draft == "hi"


async def test_an_unknown_command_is_given_back(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        await command(pilot, "/nonsense")
        await until(pilot, lambda: app.chat.draft == "/nonsense")
        assert app.live.conversation is None


# Settings -----------------------------------------------------------------------------------------


async def test_sampling_names_what_is_wrong_and_takes_what_is_right(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        await pilot.press("f3")
        await until(pilot, on_top(app, SamplingScreen))
        app.screen.query_one("#temperature", Input).value = "warm"
        await pilot.press("enter")
        await until(pilot, lambda: "warm is not a number" in screen_text(app))
        app.screen.query_one("#temperature", Input).value = "0.5"
        app.screen.query_one("#thinking", Input).value = "64"
        await pilot.press("enter")
        await until(pilot, lambda: app.live.settings.sampling.temperature == 0.5)
        assert app.live.settings.thinking == 64


async def test_a_system_prompt_is_a_preset_or_ones_own(options: AppOptions):
    app = ChatApp(dataclasses.replace(options, presets={"Poet": "Rhyme."}))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        await command(pilot, "/system")
        await until(pilot, on_top(app, Choice))
        assert "Poet" in screen_text(app)
        await pilot.press("end", "enter")
        await until(pilot, on_top(app, Editing))
        await pilot.press(*"Be kind", "ctrl+s")
        await until(pilot, lambda: app.live.settings.system_prompt == "Be kind")


async def test_settings_come_back_with_their_conversation(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        conversation = app.live.conversation
        await command(pilot, "/think 64")
        await until(pilot, lambda: app.live.settings.thinking == 64)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.live.settings.thinking is None)
    again = ChatApp(dataclasses.replace(options, conversation=conversation))
    async with again.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: again.chat.title_shown == QUESTION)
        assert again.live.settings.thinking == 64


@pytest.mark.parametrize(("choice", "theme"), [("light", "day"), ("256", "dusk-256")])
async def test_the_colours_change_at_once(options: AppOptions, choice: str, theme: str):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        assert app.theme == "dusk"
        await command(pilot, f"/theme {choice}")
        await until(pilot, lambda: app.theme == theme)


# Copying, the palette, the log --------------------------------------------------------------------


async def test_a_copy_says_how_far_it_got(options: AppOptions, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.platform", "linux")
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await say(pilot, QUESTION)
        await pilot.press("f9")
        await until(pilot, lambda: app.clipboard == "Paris.")
        await until(pilot, lambda: "sent to the terminal's clipboard" in screen_text(app))
        await command(pilot, "/copy code")
        await until(pilot, lambda: "Nothing to copy" in screen_text(app))
        await command(pilot, "/copy all")
        await until(pilot, lambda: QUESTION in app.clipboard and "Paris." in app.clipboard)


async def test_the_palette_finds_every_command(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        await pilot.press("ctrl+p")
        await until(pilot, on_top(app, CommandPalette))
        await pilot.press(*"temperature")
        await until(pilot, lambda: "/sampling" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, on_top(app, SamplingScreen))


async def test_the_log_is_there_after_a_fault_and_the_app_goes_on(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await idle(pilot)
        app.live.store.close()  # what no one expects: the database is gone
        await command(pilot, QUESTION)
        await until(pilot, lambda: app.chat.draft == QUESTION)
        assert not app.chat.reply.running
        assert app.is_running
        await pilot.press("f8")
        await until(pilot, lambda: "Log" in screen_text(app))


def test_settings_of_the_command_line_stay_when_a_conversation_has_others(options: AppOptions):
    given = dataclasses.replace(
        options, settings=SessionSettings("tiny", thinking=5), given=frozenset({"thinking"})
    )
    app = ChatApp(given)
    with ConversationStore() as store:
        stored = store.create("Old", b'{"model":"other","thinking":9}').id
    app.live.open()
    app.live.open_conversation(stored, first=True)
    assert (app.live.settings.thinking, app.live.settings.model) == (5, "tiny")
    app.live.open_conversation(stored)
    assert app.live.settings.thinking == 9
    app.live.close()
