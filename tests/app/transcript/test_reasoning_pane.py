"""The reasoning pane's head line and folding."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from minicpm5_mac.app.transcript import ReasoningPane


class PaneApp(App[None]):
    def __init__(self, pane: ReasoningPane) -> None:
        super().__init__()
        self.pane = pane

    def compose(self) -> ComposeResult:
        yield self.pane


RUNNING = {
    "nothing known": (None, None, "Thinking"),
    "no budget": (5, None, "Thinking: 5 tokens"),
    "with a budget": (32, 64, "Thinking: 32 of 64 tokens █████░░░░░"),
    "over the budget": (70, 64, "Thinking: 64 of 64 tokens ██████████ and 6 more to round off"),
}


@pytest.mark.parametrize(("tokens", "budget", "line"), RUNNING.values(), ids=RUNNING.keys())
def test_while_it_thinks(tokens: int | None, budget: int | None, line: str) -> None:
    pane = ReasoningPane()
    if tokens is not None:
        pane.set_budget(tokens, budget)
    assert pane.summary == line


@pytest.mark.parametrize(
    ("cause", "budget", "line"),
    [
        ("model", None, "Thought for 212 tokens"),
        ("model", 512, "Thought for 212 tokens of 512"),
        ("budget", 212, "Thought for 212 tokens of 212, budget spent"),
        ("budget", 185, "Thought for 185 tokens of 185 and 27 more to round off"),
        ("model", 185, "Thought for 185 tokens of 185 and 27 more to round off"),
        (
            "room",
            200,
            "Thought for 200 tokens of 200 and 12 more to round off, the answer needed the room",
        ),
        ("answer_now", 512, "Thought for 212 tokens of 512, you asked for the answer"),
        ("loop", None, "Thought for 212 tokens, it went round in circles"),
        ("room", None, "Thought for 212 tokens, the answer needed the room"),
        ("stopped", None, "Thought for 212 tokens, stopped"),
    ],
)
def test_when_it_is_over(cause: str, budget: int | None, line: str) -> None:
    pane = ReasoningPane("x")
    pane.set_budget(3, budget)
    pane.close(cause, 212)
    assert pane.summary == line


async def test_keys_and_clicks_fold_it_and_the_users_choice_stays() -> None:
    app = PaneApp(pane := ReasoningPane("deep"))
    async with app.run_test(size=(40, 10)) as pilot:
        pane.focus()
        await pilot.press("enter")
        assert not pane.expanded
        await pilot.click(".head")
        assert pane.expanded
        await pilot.click(pane, offset=(4, 1))
        assert pane.expanded
        pane.fold()
        assert pane.expanded


async def test_it_folds_by_itself_when_nobody_chose() -> None:
    app = PaneApp(pane := ReasoningPane("deep"))
    async with app.run_test(size=(40, 10)) as pilot:
        pane.fold()
        await pilot.pause()
        assert not pane.expanded
        assert pane.region.height == 1
