"""The thinking of a reply: streams, shows how much of its budget is used, folds away."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from minicpm5_mac.app.markdown import MarkdownStream

# What is said behind the count; the model's own end is the ordinary case and needs no word.
_CAUSES: dict[str, str] = {
    "model": "",
    "budget": "budget spent",
    "answer_now": "you asked for the answer",
    "loop": "it went round in circles",
    "room": "the answer needed the room",
    "stopped": "stopped",
}


class ReasoningPane(Widget, can_focus=True):
    """Reasoning with a head line that says how long it is: click it or press Enter to fold it.

    It is open while the model thinks and folds once, when the answer starts, unless the user
    has folded or opened it before.
    """

    DEFAULT_CSS = Path(__file__).with_name("reasoning_pane.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "toggle", "Show or hide reasoning"),
    ]

    expanded: reactive[bool] = reactive(True)

    def __init__(self, text: str = "", *, expanded: bool = True) -> None:
        super().__init__()
        self._stream = MarkdownStream(text)
        self._tokens: int | None = None
        self._budget: int | None = None
        self._cause: str | None = None
        self._by_user = False
        self._head = Static(markup=False, classes="head")
        self.set_reactive(ReasoningPane.expanded, expanded)

    @property
    def text(self) -> str:
        """The reasoning as the model wrote it."""
        return self._stream.text

    @property
    def is_closed(self) -> bool:
        """Whether the thinking is over."""
        return self._cause is not None

    @property
    def cause(self) -> str | None:
        """Why the thinking ended, None while it goes on."""
        return self._cause

    @property
    def tokens(self) -> int | None:
        """Thinking tokens so far, None while nobody said."""
        return self._tokens

    @property
    def budget(self) -> int | None:
        """Thinking tokens allowed, None where there is no limit."""
        return self._budget

    def append(self, text: str) -> None:
        """Add reasoning text."""
        self._stream.append(text)

    def set_budget(self, tokens: int, budget: int | None) -> None:
        """Say how many thinking tokens there are, of how many allowed (None: no limit)."""
        if (tokens, budget) != (self._tokens, self._budget):
            self._tokens, self._budget = tokens, budget
            self._write_head()

    def close(self, cause: str, tokens: int | None = None) -> None:
        """The thinking is over. cause: events.ThinkingClosed's, or "stopped" with the reply."""
        self._cause = cause
        if tokens is not None:
            self._tokens = tokens
        self._stream.finish()
        self._write_head()

    def fold(self) -> None:
        """Fold because the answer starts; the user's own choice stays."""
        if not self._by_user:
            self.expanded = False

    def action_toggle(self) -> None:
        """Show or hide the reasoning."""
        self._by_user = True
        self.expanded = not self.expanded

    @property
    def summary(self) -> str:
        """The head line: "Thought for 212 tokens of 512"."""
        if self._cause is None:
            if self._tokens is None:
                return "Thinking"
            if self._budget is None:
                return f"Thinking: {self._tokens} tokens"
            spent, more = self._spent_and_more()
            return f"Thinking: {spent} of {self._budget} tokens {self._gauge()}{more}"
        words = "Thought"
        spent, more = self._spent_and_more()
        if spent is not None:
            words += f" for {spent} token{'' if spent == 1 else 's'}"
            if self._budget is not None:
                words += f" of {self._budget}"
        why = _CAUSES.get(self._cause, self._cause)
        if more and self._cause in ("budget", "model"):
            return words + more  # where it went on, the budget was spent
        return f"{words}{more}, {why}" if why else words + more

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._stream

    def on_mount(self) -> None:
        self._stream.display = self.expanded
        self._write_head()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self._head:
            self.action_toggle()

    def watch_expanded(self, expanded: bool) -> None:
        self._stream.display = expanded
        self._write_head()

    def _write_head(self) -> None:
        self._head.update(f"{'▾' if self.expanded else '▸'} {self.summary}")

    def _spent_and_more(self) -> tuple[int | None, str]:
        """Tokens inside the budget, and words for those that the model had to round off with."""
        if self._tokens is None or self._budget is None or self._tokens <= self._budget:
            return self._tokens, ""
        return self._budget, f" and {self._tokens - self._budget} more to round off"

    def _gauge(self) -> str:
        cells = 10
        used = min(1.0, (self._tokens or 0) / max(1, self._budget or 1))
        full = round(used * cells)
        return "█" * full + "░" * (cells - full)
