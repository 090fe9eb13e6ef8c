"""The transcript: following, scrolling back, far away messages, moving between messages."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from minicpm5_mac import events
from minicpm5_mac.app.transcript import Entry, Transcript
from minicpm5_mac.app.transcript.transcript import BATCH, KEPT, text_of
from minicpm5_mac.messages import Message


class TranscriptApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.following: list[bool] = []

    def compose(self) -> ComposeResult:
        yield Transcript()

    def on_following_scroll_following_changed(self, message: Transcript.FollowingChanged) -> None:
        self.following.append(message.following)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)


def conversation(count: int) -> list[Entry]:
    """`count` messages of three rows each."""
    return [
        Entry(f"m{n}", Message("user" if n % 2 == 0 else "assistant", f"text {n}"))
        for n in range(count)
    ]


def top(transcript: Transcript) -> list[tuple[str, int]]:
    """The ids and rows of the messages in sight."""
    height = transcript.size.height
    return [(m.message_id, m.region.y) for m in transcript.messages if 0 <= m.region.y < height]


async def stream(pilot: Pilot[None], transcript: Transcript, lines: int) -> None:
    message = transcript.begin_assistant("reply")
    for number in range(lines):
        message.show(events.Answer(f"line {number}\n"))
    await pilot.pause(0.3)


async def test_it_follows_what_is_written() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        transcript.add_user("1", "go")
        await stream(pilot, transcript, 60)
        assert transcript.following
        assert transcript.scroll_y == transcript.max_scroll_y > 40


async def test_scrolling_back_is_never_fought_and_the_end_is_caught_again() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        await stream(pilot, transcript, 60)
        transcript.focus()
        await pilot.press("pageup")
        await pilot.pause(0.5)
        there = transcript.scroll_y
        assert not transcript.following
        message = transcript.last_reply
        assert message is not None
        message.show(events.Answer("more\n" * 30))
        await pilot.pause(0.3)
        assert transcript.scroll_y == there
        await pilot.press("G")
        await pilot.pause(0.3)
        assert transcript.following
        message.show(events.Answer("and more\n" * 30))
        await pilot.pause(0.3)
        assert transcript.scroll_y == transcript.max_scroll_y
        assert app.following == [False, True]


async def test_a_resize_keeps_the_end_in_sight() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        await stream(pilot, app.transcript, 60)
        await pilot.resize_terminal(20, 8)
        await pilot.pause(0.3)
        assert app.transcript.following
        assert app.transcript.scroll_y == app.transcript.max_scroll_y


async def test_a_long_conversation_opens_at_its_end_with_few_widgets() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        entries = conversation(500)
        await app.transcript.load(entries)
        await pilot.pause()
        assert len(app.transcript.messages) <= KEPT
        assert app.transcript.messages[-1].message_id == "m499"
        assert app.transcript.following
        assert [e.message_id for e in app.transcript.entries()] == [e.message_id for e in entries]


async def test_scrolling_up_brings_earlier_messages_back_without_a_jump() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        await transcript.load(conversation(500))
        await pilot.pause()
        transcript.scroll_to(y=14, animate=False, immediate=True)
        await pilot.pause()
        before = top(transcript)
        transcript.scroll_to(y=10, animate=False, immediate=True)
        await pilot.pause(0.5)
        assert len(transcript.messages) == KEPT + BATCH
        assert (
            top(transcript)[-1] == (before[-1][0], before[-1][1] + 4)
            or dict(top(transcript))[before[0][0]] == before[0][1] + 4
        )


async def test_new_messages_turn_the_oldest_into_entries() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        await transcript.load(conversation(10))
        for number in range(KEPT + BATCH):
            transcript.add_user(f"new{number}", "x")
        await pilot.pause()
        assert len(transcript.messages) <= KEPT + BATCH
        assert len(transcript.entries()) == 10 + KEPT + BATCH


async def test_a_branch_takes_off_what_follows() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        await transcript.load(conversation(200))
        await transcript.remove_from("m198")
        assert len(transcript.entries()) == 198
        await transcript.remove_from("m20")
        await pilot.pause()
        assert [e.message_id for e in transcript.entries()][-1] == "m19"


async def test_keys_move_between_messages() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)) as pilot:
        transcript = app.transcript
        await transcript.load(conversation(6))
        transcript.focus()
        await pilot.press("k")
        assert transcript.focused_message is transcript.messages[-1]
        await pilot.press("k", "k", "j")
        assert transcript.focused_message is transcript.messages[-2]


async def test_every_key_says_what_it_does() -> None:
    app = TranscriptApp()
    async with app.run_test(size=(60, 12)):
        await app.transcript.load(conversation(2))
        for widget in [app.transcript, *app.transcript.messages]:
            for binding in widget._bindings.key_to_bindings.values():
                assert all(b.description for b in binding)


def test_a_conversation_as_text() -> None:
    entries = [*conversation(2), Entry(notice="not said by anyone")]
    assert text_of(entries) == "You:\ntext 0\n\nAssistant:\ntext 1"
