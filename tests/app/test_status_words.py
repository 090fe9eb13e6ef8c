"""What the status line, the banner and the model's state say, folded from events."""

from __future__ import annotations

import pytest

from minicpm5_mac import events
from minicpm5_mac.app import status_segments
from minicpm5_mac.app.banner_text import banner
from minicpm5_mac.app.event_pump import joined
from minicpm5_mac.app.model_state import ModelState, download_text, duration_text, size_text
from minicpm5_mac.app.reply_state import Phase, ReplyState
from minicpm5_mac.app.status_segments import Segment, StatusView
from minicpm5_mac.app.when import when
from minicpm5_mac.app.window_title import set_title
from minicpm5_mac.events import Usage

USAGE = Usage(
    generated_tokens=40,
    thinking_tokens=30,
    thinking_budget=64,
    decode_rate=41.24,
    time_to_first_token=0.456,
    context_used=1200,
    context_limit=8192,
)
READY = events.ModelReady("m", "/m", "", "cpu", "4-bit", 10, 1, 8192, True)
ENDINGS = [
    events.ReplyEnd("complete", "stop", USAGE),
    events.ReplyEnd("cancelled", "cancelled"),
    events.ReplyEnd("failed", "error"),
    events.ReplyEnd("failed", "context_full"),
    events.EngineStopped("crashed"),
]


def words(view: StatusView) -> str:
    made = [segment for make in status_segments.SEGMENTS if (segment := make(view))]
    return " · ".join(segment.text for segment in made)


def test_the_phases_of_a_reply_follow_its_events():
    state = ReplyState().begun()
    assert state.phase is Phase.STARTING
    state = state.after([events.PromptProgress(10, 5, 20, 100.0)])
    assert (state.phase, state.read, state.to_read) == (Phase.READING, 5, 20)
    state = state.after([events.Reasoning("hm")])
    assert state.phase is Phase.THINKING
    state = state.after([events.ThinkingClosed("model", 3, 0)])
    assert state.phase is Phase.ANSWERING


@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize(
    "before",
    [events.PromptProgress(0, 1, 2, 1.0), events.Reasoning("a"), events.Answer("a")],
)
def test_no_ending_leaves_a_reply_running(end, before):
    state = ReplyState().begun().after([before, events.EngineSlow(40.0), end])
    assert not state.running
    assert state.slow_seconds == 0


def test_counts_stay_after_an_end_that_brings_none():
    state = ReplyState().after([events.Progress(USAGE), ENDINGS[2]])
    assert state.usage == USAGE


def test_all_that_a_user_wants_to_see_is_in_the_line_while_it_thinks():
    state = ReplyState().begun().after([events.Reasoning("a"), events.Progress(USAGE)])
    said = words(StatusView("MiniCPM5-2B", reply=state))
    assert "MiniCPM5-2B" in said
    assert "thinking 30 of 64" in said
    assert "15 % of 8K" in said
    assert "41.2 tok/s" in said
    assert "0.46 s" in said


@pytest.mark.parametrize(
    ("thinking", "can_think", "says"),
    [
        (None, True, "thinking on"),
        (0, True, "thinking off"),
        (64, True, "thinks ≤ 64"),
        (64, False, ""),
    ],
)
def test_what_thinking_is_allowed(thinking, can_think, says):
    segment = status_segments.thinking(StatusView(thinking=thinking, can_think=can_think))
    assert (segment.text if segment else "") == says


@pytest.mark.parametrize(
    ("used", "says", "tone"),
    [
        (0, "░░░░░░░░ 0 %", "muted"),
        (1, "█░░░░░░░ <1 %", "muted"),
        (4096, "████░░░░ 50 %", "muted"),
        (7500, "███████░ 92 %", "warning"),
        (9000, "████████ 100 %", "warning"),
    ],
)
def test_the_gauge_of_the_context(used, says, tone):
    reply = ReplyState(usage=Usage(context_used=used, context_limit=8192))
    segment = status_segments.context(StatusView(reply=reply))
    assert segment is not None
    assert says in segment.text
    assert segment.tone == tone


def test_a_narrow_line_drops_what_matters_least_and_never_what_runs():
    segments = [Segment("phase"), Segment("context", rank=1), Segment("first token", rank=4)]
    assert [s.text for s in status_segments.fit(segments, 80)] == [
        "phase",
        "context",
        "first token",
    ]
    assert [s.text for s in status_segments.fit(segments, 20)] == ["phase", "context"]
    assert [s.text for s in status_segments.fit(segments, 3)] == ["phase"]


# The model ----------------------------------------------------------------------------------------


def test_a_model_goes_from_its_stages_to_ready():
    state = ModelState("2b").after([events.ModelStage("starting")])
    assert state.starting
    state = state.after([events.DownloadProgress("m", 500, 1000, 100.0, 5.0)])
    assert state.line() == "downloading 2b · 50 % · 500 bytes of 1 KB · 100 bytes/s · 5 s left"
    state = state.after([READY])
    assert not state.starting
    assert state.ready == READY


@pytest.mark.parametrize(
    "end",
    [events.ModelFailed("offline", "no network"), events.EngineStopped("crashed", "signal 9")],
)
def test_a_fault_ends_every_stage(end):
    state = ModelState("2b").after([events.ModelStage("loading"), end])
    assert not state.starting
    assert state.ready is None
    assert state.line() == ""


def test_a_download_of_unknown_size_tells_what_is_known():
    assert download_text(events.DownloadProgress("m", 2_500_000, None, 0.0, None)) == "2 MB"


@pytest.mark.parametrize(
    ("count", "says"),
    [(999, "999 bytes"), (1000, "1 KB"), (92_871_040, "93 MB"), (1_234_000_000, "1.2 GB")],
)
def test_sizes_are_those_of_a_file_manager(count, says):
    assert size_text(count) == says


@pytest.mark.parametrize(("seconds", "says"), [(5, "5 s"), (300, "5 min"), (7200, "2.0 h")])
def test_durations(seconds, says):
    assert duration_text(seconds) == says


# The banner ---------------------------------------------------------------------------------------


def test_the_worst_is_said_first_and_names_its_key():
    stopped = ModelState("m", stopped="stopped unexpectedly")
    said = banner(stopped, ReplyState(), waiting="text", editing=True, unanswered=True)
    assert said is not None
    assert said.level == "error"
    assert "ctrl+r" in said.advice


def test_a_slow_engine_is_told_while_its_reply_runs_and_not_afterwards():
    ready = ModelState("m", ready=READY)
    state = ReplyState().begun().after([events.EngineSlow(45.0)])
    said = banner(ready, state)
    assert said is not None
    assert "45" in said.text
    assert banner(ready, state.stopped()) is None


def test_a_waiting_message_is_shown_with_the_way_back():
    said = banner(ModelState("m", stage="loading"), ReplyState(), waiting="my text")
    assert said is not None
    assert "my text" in said.text
    assert "esc" in said.advice


# Small things -------------------------------------------------------------------------------------


def test_pieces_of_text_are_joined_and_nothing_else_is_changed():
    batch = [
        events.Reasoning("a"),
        events.Reasoning("b"),
        events.Answer("c"),
        events.Answer("d"),
        events.Progress(USAGE),
        events.Answer("e"),
    ]
    assert joined(batch) == [
        events.Reasoning("ab"),
        events.Answer("cd"),
        events.Progress(USAGE),
        events.Answer("e"),
    ]


def test_a_title_cannot_carry_a_terminal_sequence():
    sequence = set_title("a\x1b]52;c;AAAA\x07b\nc")
    assert sequence.count("\x1b") == 1
    assert sequence.count("\x07") == 1
    assert len(set_title("x" * 1000)) < 120


NOW = 1_700_000_000.0


@pytest.mark.parametrize(("ago", "says"), [(0, "now"), (59, "now"), (600, "10 min ago")])
def test_a_moment_ago_is_told_in_minutes(ago, says):
    assert when(NOW - ago, NOW) == says


def test_long_ago_is_told_by_its_date():
    assert when(NOW - 800 * 86400, NOW).startswith("2021-")
