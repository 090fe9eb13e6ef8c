"""The list of candidates above the composer. It never takes the focus: the composer steers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from minicpm5_mac.app.completion import Candidate, Completion


class CompletionList(OptionList, can_focus=False):
    """Shows one completion; hidden while there is none."""

    BINDINGS: ClassVar = []
    DEFAULT_CSS = """
    CompletionList {
        display: none;
        height: auto;
        max-height: 8;
        margin: 0 2;
        padding: 0 1;
        border: none;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        background: $panel;
        scrollbar-size-vertical: 1;
        &.-offering { display: block; }
        & > .option-list--option-highlighted {
            background: $primary;
            color: $background;
            text-style: none;
        }
    }
    """

    @dataclass
    class Taken(Message):
        """A candidate was clicked."""

        candidate: Candidate

    completion: Completion | None = None
    stepped: bool = False
    """Whether the user moved the highlight; before that it is on the first one by itself."""

    @property
    def offering(self) -> bool:
        return self.completion is not None

    def offer(self, completion: Completion | None) -> None:
        """Show these candidates, or nothing."""
        if completion == self.completion:
            return
        self.completion = completion
        self.stepped = False
        self.set_class(completion is not None, "-offering")
        self.clear_options()
        if completion is not None:
            width = max(len(candidate.label) for candidate in completion.candidates) + 2
            self.add_options(
                Option(Content.assemble(candidate.label.ljust(width), (candidate.note, "dim")))
                for candidate in completion.candidates
            )
            self.highlighted = 0

    def step(self, by: int) -> None:
        """Move the highlight, around the ends."""
        self.stepped = True
        if self.option_count:
            self.highlighted = ((self.highlighted or 0) + by) % self.option_count

    def chosen(self) -> Candidate | None:
        if self.completion is None or self.highlighted is None:
            return None
        return self.completion.candidates[self.highlighted]

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.completion is not None:
            self.post_message(self.Taken(self.completion.candidates[event.option_index]))
