"""How tokens are drawn, and how long the model may think."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Input, Label, Static

from minicpm5_mac.app.sampling_form import FIELDS, read_sampling, read_thinking, typed_values
from minicpm5_mac.app.screens.dialog import Dialog
from minicpm5_mac.failure import Failure
from minicpm5_mac.request import Sampling


@dataclass(frozen=True)
class Drawing:
    """What the screen changes. thinking: tokens, 0 off, None no limit."""

    sampling: Sampling
    thinking: int | None


class SamplingScreen(Dialog[Drawing]):
    """One field a setting; an empty one is the model's own default."""

    TITLE = "Sampling and thinking"
    BINDINGS: ClassVar = [Binding("enter,ctrl+s", "accept", "Use", key_display="enter")]
    DEFAULT_CSS = """
    SamplingScreen .setting { height: 1; margin: 0 0 1 0; }
    SamplingScreen .setting Label { width: 15; }
    SamplingScreen .setting Input { width: 14; height: 1; border: none; padding: 0 1;
        background: $panel; }
    SamplingScreen .setting Input:focus { border: none; background: $primary 25%; }
    SamplingScreen .setting Static { padding: 0 0 0 2; color: $text-muted; }
    """

    def __init__(self, drawing: Drawing) -> None:
        super().__init__()
        self._drawing = drawing

    def content(self) -> ComposeResult:
        thinking = self._drawing.thinking
        shown = "on" if thinking is None else "off" if thinking == 0 else str(thinking)
        yield from self._row("thinking", "Thinking", shown, "on, off, or at most this many tokens")
        typed = typed_values(self._drawing.sampling)
        for field in FIELDS:
            yield from self._row(field.name, field.label, typed[field.name], field.note)
        yield Static("An empty field leaves it to the model. Next reply on.", classes="dialog-note")
        yield Static(classes="dialog-fault", markup=False)

    @staticmethod
    def _row(name: str, label: str, value: str, note: str) -> ComposeResult:
        with Horizontal(classes="setting"):
            yield Label(label)
            yield Input(value, id=name, placeholder="model's own", select_on_focus=False)
            yield Static(note)

    def on_mount(self) -> None:
        self.query_one("#temperature", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_accept()

    def action_accept(self) -> None:
        typed = {item.id or "": item.value for item in self.query(Input)}
        try:
            drawing = Drawing(read_sampling(typed), read_thinking(typed["thinking"]))
        except Failure as failure:
            self.query_one(".dialog-fault", Static).update(str(failure))
            return
        self.dismiss(drawing)
