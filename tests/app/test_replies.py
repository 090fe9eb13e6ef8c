"""Replies on the screen: they stream in, are stopped, asked for again, edited, continued."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from app_driver import idle, say, screen_text, until
from tiny.prompts import prompt

from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.reply_state import Phase

QUESTION = "What is the capital of France?"
FOREVER = prompt("endless_thinking").messages()[-1]["content"]
SIZE = (100, 30)


def last_two(app: ChatApp) -> tuple[str, str]:
    stored = app.live.session.messages()
    return stored[-2].content, stored[-1].content


async def test_a_question_is_answered_and_its_reasoning_folds_away(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        reply = app.chat.transcript.last_reply
        assert reply is not None
        assert reply.text == prompt("capital").replies[0].content
        assert [pane.expanded for pane in reply.panes] == [False]
        assert reply.panes[0].summary.startswith("Thought for ")
        await pilot.pause()
        shown = screen_text(app)
        for word in ("Paris", "tok/s", "context", "tiny", "thinking on"):
            assert word in shown
        assert app.chat.composer.border_title == QUESTION  # the conversation got its title


async def test_a_message_may_be_sent_before_the_model_is_there(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        app.chat.composer.load(QUESTION)
        await pilot.press("enter")  # the model is not ready at the first key
        await until(pilot, lambda: app.chat.transcript.last_reply is not None)
        await idle(pilot)
        assert last_two(app)[0] == QUESTION


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_stopping_keeps_what_was_said_and_the_draft(options: AppOptions, key: str):
    app = ChatApp(dataclasses.replace(options, settings=endless(options)))
    async with app.run_test(size=SIZE) as pilot:
        await idle(pilot)
        app.chat.composer.load(FOREVER)
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.reply.phase is Phase.THINKING)
        app.chat.composer.load("next")
        await pilot.press(key)
        await idle(pilot)
        reply = app.chat.transcript.last_reply
        assert reply is not None
        assert reply.end_note == "stopped"
        assert reply.reasoning
        assert app.live.session.messages()[-1].reasoning == reply.reasoning
        assert app.chat.draft == "next"
        assert app.is_running


def endless(options: AppOptions):
    return msgspec.structs.replace(options.settings, max_tokens=None)


async def test_answer_now_ends_the_thinking(options: AppOptions):
    app = ChatApp(dataclasses.replace(options, settings=endless(options)))
    async with app.run_test(size=SIZE) as pilot:
        await idle(pilot)
        app.chat.composer.load(FOREVER)
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.reply.phase is Phase.THINKING)
        await pilot.press("ctrl+t")
        await idle(pilot)
        reply = app.chat.transcript.last_reply
        assert reply is not None
        assert reply.panes[0].cause == "answer_now"
        assert reply.text


async def test_a_budget_is_shown_and_held(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await idle(pilot)
        app.chat.composer.load("/think 16")
        await pilot.press("enter")
        await until(pilot, lambda: app.live.settings.thinking == 16)
        await say(pilot, FOREVER)
        reply = app.chat.transcript.last_reply
        assert reply is not None
        summary = reply.panes[0].summary
        assert summary.startswith("Thought for 16 tokens of 16")
        assert summary.endswith((", budget spent", " more to round off"))
        assert reply.text
        assert "thinks ≤ 16" in screen_text(app)


async def test_regenerate_adds_a_version_and_the_brackets_walk_between_them(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        first = app.live.session.messages()[-1].id
        await pilot.press("ctrl+r")
        await until(pilot, lambda: app.live.session.messages()[-1].id != first)
        await idle(pilot)
        second = app.live.session.messages()[-1]
        assert second.siblings == (first, second.id)
        assert len(app.chat.transcript.messages) == 2
        reply = app.chat.transcript.last_reply
        assert reply is not None
        await until(pilot, lambda: "2 of 2" in screen_text(app))
        reply.focus()
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: app.live.session.head == first)
        await until(pilot, lambda: "1 of 2" in screen_text(app))


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_bell_rings_at_the_end_of_a_reply_when_asked_for(
    options: AppOptions, wanted: bool, monkeypatch: pytest.MonkeyPatch
):
    app = ChatApp(dataclasses.replace(options, bell=wanted))
    rung: list[bool] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(True))
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        assert bool(rung) is wanted


async def test_editing_sends_a_branch_and_brings_the_draft_back(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        await say(pilot, "Say this: seven blue lions")
        old = app.live.session.messages()
        app.chat.composer.load("a draft")
        app.chat.transcript.messages[0].focus()
        await pilot.press("e")
        await until(pilot, lambda: app.chat.draft == QUESTION)
        assert "Editing an earlier message" in screen_text(app)
        app.chat.composer.load("My name is Ada.")
        await pilot.press("enter")
        await until(pilot, lambda: last_two(app)[0] == "My name is Ada.")
        await idle(pilot)
        assert app.chat.draft == "a draft"
        assert app.chat.transcript.messages[0].text == "My name is Ada."
        now = app.live.session.messages()
        assert len(now) == 2
        assert now[0].siblings == (old[0].id, now[0].id)  # nothing later is lost
        assert app.live.store.messages.leaf(app.live.conversation or "", old[0].id) == old[-1].id


async def test_escape_leaves_an_edit(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, QUESTION)
        app.chat.composer.load("a draft")
        app.chat.action_edit_last()
        await until(pilot, lambda: app.chat.draft == QUESTION)
        await pilot.press("escape")
        assert app.chat.draft == "a draft"


async def test_a_stopped_reply_goes_on_in_its_place(options: AppOptions):
    short = msgspec.structs.replace(options.settings, max_tokens=4, thinking=0)
    app = ChatApp(dataclasses.replace(options, settings=short))
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "Write a long guide about gardens.")
        cut = app.live.session.messages()[-1]
        assert cut.cause == "max_tokens"
        await pilot.press("ctrl+g")
        await until(pilot, lambda: len(app.live.session.messages()[-1].content) > len(cut.content))
        await idle(pilot)
        longer = app.live.session.messages()[-1]
        assert longer.id == cut.id
        assert longer.content.startswith(cut.content)
        reply = app.chat.transcript.last_reply
        assert reply is not None
        assert reply.text == longer.content


async def test_a_file_goes_along_and_a_bad_one_gives_the_text_back(options: AppOptions):
    from pathlib import Path

    Path("notes.txt").write_text("tulip", encoding="utf-8")
    Path("picture.bin").write_bytes(b"\0\1")
    app = ChatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        await say(pilot, "Say this: @notes.txt")
        question = app.live.session.messages()[0]
        assert [(file.path, file.text) for file in question.attachments] == [("notes.txt", "tulip")]
        app.chat.composer.load("see @picture.bin")
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.draft == "see @picture.bin")
        assert not app.chat.reply.running
        assert len(app.live.session.messages()) == 2


async def test_scrolling_back_while_it_streams_is_not_fought(options: AppOptions):
    app = ChatApp(dataclasses.replace(options, settings=endless(options)))
    async with app.run_test(size=(80, 12)) as pilot:
        await idle(pilot)
        app.chat.composer.load(FOREVER)
        await pilot.press("enter")
        transcript = app.chat.transcript
        await until(pilot, lambda: transcript.max_scroll_y > 4)
        await pilot.press("pageup")
        await until(pilot, lambda: not transcript.following)
        place, length = transcript.scroll_y, transcript.max_scroll_y
        await until(pilot, lambda: transcript.max_scroll_y > length)
        assert transcript.scroll_y == place
        await pilot.press("escape")
        await idle(pilot)


async def test_another_size_keeps_all_and_draws_it_anew(options: AppOptions):
    app = ChatApp(options)
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, QUESTION)
        for size in ((40, 12), (80, 24), (20, 8), (120, 36)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert all(len(line) <= size[0] for line in screen_text(app).splitlines())
        assert screen_text(app).count("Paris.") == 1
