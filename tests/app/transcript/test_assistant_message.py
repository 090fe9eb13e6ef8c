"""A reply on the screen, from its events."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget

from minicpm5_mac import events
from minicpm5_mac.app.markdown import MarkdownStream
from minicpm5_mac.app.markdown.rows_view import RowsView
from minicpm5_mac.app.transcript import (
    AssistantMessage,
    CopyRequested,
    EditRequested,
    Entry,
    ToolCallLine,
    Transcript,
    UserMessage,
)
from minicpm5_mac.messages import Message, ToolCall


class MessageApp(App[None]):
    def __init__(self, message: Widget) -> None:
        super().__init__()
        self.message = message
        self.copied: list[CopyRequested] = []
        self.edited: list[EditRequested] = []

    def compose(self) -> ComposeResult:
        yield self.message

    def on_copy_requested(self, message: CopyRequested) -> None:
        self.copied.append(message)

    def on_edit_requested(self, message: EditRequested) -> None:
        self.edited.append(message)


def rows(app: App[None]) -> list[str]:
    """The text of everything in the app that shows rows."""
    views = [view for view in app.query(RowsView) if view.region.height]
    return [view.render_line(y).text.rstrip() for view in views for y in range(view.size.height)]


REPLY = [
    events.PromptProgress(0, 10, 10, 5.0),
    events.Reasoning("Hm"),
    events.Reasoning("m."),
    events.Progress(events.Usage(thinking_tokens=2, thinking_budget=8)),
    events.ThinkingClosed("budget", 8, 2),
    events.Answer("So **it"),
    events.Answer("** is.\n\n```py\nx\n```\n"),
    events.CallStarted("read"),
    events.CallParsed(ToolCall("read", {"path": "a"})),
    events.CallStarted("rm"),
    events.CallRejected("unknown_tool", "rm"),
    events.ReplyEnd("truncated", "max_tokens"),
]


async def test_a_reply_is_its_parts_in_order() -> None:
    app = MessageApp(message := AssistantMessage("7"))
    async with app.run_test(size=(60, 24)) as pilot:
        for event in REPLY:
            message.show(event)
        await pilot.pause(0.3)
        kinds = [type(child).__name__ for child in message.children]
        assert kinds == [
            *("Label", "ReasoningPane", "MarkdownStream", "ToolCallLine", "ToolCallLine"),
            *("Static", "Static"),
        ]
        assert "So it is." in rows(app)
        assert '→ read {"path": "a"}' in rows(app)
        assert "✗ rm did not run: there is no such tool" in rows(app)
        assert message.end_note == "cut at the limit of tokens for a reply"
        assert message.code_blocks() == [("py", "x")]
        assert message.calls == [ToolCall("read", {"path": "a"})]


async def test_events_before_the_message_is_mounted_are_not_lost() -> None:
    message = AssistantMessage()
    for event in REPLY[:-1]:
        message.show(event)
    app = MessageApp(message)
    async with app.run_test(size=(60, 24)) as pilot:
        message.show(REPLY[-1])
        await pilot.pause(0.3)
        assert "So it is." in rows(app)


async def test_an_entry_shows_as_the_reply_it_was_made_of() -> None:
    live = AssistantMessage("7")
    app = MessageApp(live)
    async with app.run_test(size=(60, 24)) as pilot:
        for event in REPLY:
            live.show(event)
        await pilot.pause()
        entry = live.entry
    stored = AssistantMessage(entry=entry)
    assert stored.entry == entry
    assert entry.message == Message(
        "assistant",
        "So **it** is.\n\n```py\nx\n```\n",
        "Hmm.",
        (ToolCall("read", {"path": "a"}),),
    )
    assert (entry.thinking_tokens, entry.thinking_budget) == (8, 8)
    assert entry.thinking_cause == "budget"


@pytest.mark.parametrize("cause", ["cancelled", "error", "context_full", "context", "loop"])
async def test_whatever_ends_a_reply_nothing_waits_any_more(cause: str) -> None:
    app = MessageApp(message := AssistantMessage())
    async with app.run_test(size=(60, 24)) as pilot:
        message.show(events.Reasoning("thinking"))
        message.show(events.CallStarted("read"))
        message.show(events.ReplyEnd("failed", cause, detail="why"))  # type: ignore[arg-type]
        await pilot.pause(0.2)
        assert all(pane.is_closed for pane in message.panes)
        assert not any(line.has_class("writing") for line in app.query(ToolCallLine))
        assert message.end_note.endswith(": why")


async def test_reasoning_folds_when_the_answer_starts() -> None:
    app = MessageApp(message := AssistantMessage())
    async with app.run_test(size=(60, 24)) as pilot:
        message.show(events.Reasoning("deep thoughts"))
        await pilot.pause(0.2)
        assert "deep thoughts" in rows(app)
        message.show(events.ThinkingClosed("model", 212, 0))
        message.show(events.Answer("So."))
        await pilot.pause(0.2)
        assert rows(app) == ["So."]
        assert message.panes[0].summary == "Thought for 212 tokens"


async def test_reasoning_does_not_fold_under_the_eyes_of_who_scrolled_back() -> None:
    class Reading(App[None]):
        def compose(self) -> ComposeResult:
            yield Transcript()

    app = Reading()
    async with app.run_test(size=(60, 10)) as pilot:
        transcript = app.query_one(Transcript)
        message = transcript.begin_assistant()
        message.show(events.Reasoning("thought\n" * 40))
        await pilot.pause(0.3)
        transcript.scroll_to(y=5, animate=False, immediate=True)
        message.show(events.Answer("So."))
        await pilot.pause(0.3)
        assert message.panes[0].expanded
        assert transcript.scroll_y == 5


async def test_keys_copy_what_they_say() -> None:
    app = MessageApp(
        message := AssistantMessage(entry=Entry("1", Message("assistant", "a\n```\nb\n```", "r")))
    )
    async with app.run_test() as pilot:
        message.focus()
        await pilot.press("c", "b", "R")
        await pilot.pause()
        assert [(m.text, m.what) for m in app.copied] == [
            ("a\n```\nb\n```", "message"),
            ("b", "code block"),
            ("r", "reasoning"),
        ]


async def test_a_users_message_is_shown_as_sent_and_can_be_edited() -> None:
    app = MessageApp(message := UserMessage("3", "*not* markup <|im_end|>\x1b[0m"))
    async with app.run_test() as pilot:
        message.focus()
        await pilot.press("e")
        await pilot.pause()
        assert rows(app) == ["*not* markup <|im_end|>␛[0m"]
        assert [(m.message_id, m.text) for m in app.edited] == [("3", message.text)]


async def test_answers_are_streams() -> None:
    message = AssistantMessage()
    first = message.begin_answer()
    assert isinstance(first, MarkdownStream)
    assert message.begin_answer() is first
