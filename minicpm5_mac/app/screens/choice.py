"""A dialog of a few named ways on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from minicpm5_mac.app.screens.dialog import Dialog


@dataclass(frozen=True)
class Way:
    """key: what the dialog's result is, and where it is one letter, the key that takes it."""

    key: str
    label: str
    note: str = ""


class Choice(Dialog[str]):
    """Says what is to be decided and returns the key of the way that was taken."""

    def __init__(self, title: str, text: str, ways: Sequence[Way], selected: str = "") -> None:
        super().__init__()
        self.title = title
        self._text = text
        self._ways = tuple(ways)
        self._selected = selected

    def content(self) -> ComposeResult:
        if self._text:
            yield Static(self._text, classes="dialog-text", markup=False)
        width = max(len(way.label) for way in self._ways) + 2
        yield OptionList(*(Option(self._line(way, width), id=way.key) for way in self._ways))

    @staticmethod
    def _line(way: Way, width: int) -> Content:
        letter = f"{way.key}  " if len(way.key) == 1 else ""
        return Content.assemble((letter, "bold"), way.label.ljust(width), (way.note, "dim"))

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        keys = [way.key for way in self._ways]
        options.highlighted = keys.index(self._selected) if self._selected in keys else 0
        options.focus()
        for way in self._ways:
            if len(way.key) == 1:
                self._bindings.bind(way.key, f"take('{way.key}')", way.label, show=False)

    def action_take(self, key: str) -> None:
        self.dismiss(key)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)
