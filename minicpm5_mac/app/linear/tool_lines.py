"""Calls of tools as lines for screen readers, and the user's word on them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from minicpm5_mac import events
from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.tool_words import OUTCOME_WORDS, changed_files, danger
from minicpm5_mac.events import Event
from minicpm5_mac.typed_ahead import drop_typed_ahead
from minicpm5_mac.visible_text import unhidden

_QUESTION = "Allow it? y once, s this session, f always in this folder, n no: "
_QUESTION_ONCE = "Allow it? y once, n no: "
_ALLOWED = {
    "y": Decision(True),
    "yes": Decision(True),
    "s": Decision(True, "session"),
    "f": Decision(True, "folder"),
}
_DENIED = ("n", "no")
RESULT_LINES = 3
_UNDO = "/undo takes this back"


class ToolLines:
    """Says what tools do. say: writes one line. read: asks for one line."""

    def __init__(self, say: Callable[[str], None], read: Callable[[str], str]) -> None:
        self._say = say
        self._read = read
        # Another `read` has its lines from somewhere else than standard input.
        self._source = sys.stdin if read is input else None

    def show(self, event: Event, toolbox: Toolbox) -> None:
        """Say an event, if it is one of a tool's."""
        match event:
            case events.ToolStarted(title=title):
                self._say(f"Running: {unhidden(title)}")
            case events.ToolOutput(text=text):
                self._lines(text)
            case events.ToolFinished(outcome=outcome, name=name, result=result):
                self._say(f"{name}: {OUTCOME_WORDS[outcome]}, {len(result.splitlines())} lines.")
                if outcome not in ("ok", "repeated"):
                    self._lines("\n".join(result.splitlines()[-RESULT_LINES:]))
            case events.FilesChanged(changes=changes):
                self._lines(changed_files(changes, toolbox.policy.workspace, _UNDO))

    def ask(self, wanted: events.ApprovalWanted, toolbox: Toolbox) -> Decision:
        """Say the whole call and wait for the user's word; the end of the input is a no."""
        self._say(f"The model wants to run {unhidden(wanted.title)}")
        self._lines(wanted.shown)
        if warning := danger(toolbox):
            self._say(warning)
        if wanted.rule:
            self._say(f"s and f mean: {unhidden(wanted.rule)}")
        try:
            while True:
                question = _QUESTION if wanted.rule else _QUESTION_ONCE
                drop_typed_ahead(self._source)
                word = self._read(question).strip().lower()
                decision = _ALLOWED.get(word)
                if decision is not None and (wanted.rule or decision.scope == "once"):
                    return decision
                if word in _DENIED:
                    return Decision(False, word=self._read("A word to the model, or Enter: "))
        except EOFError:
            return Decision(False, word="nobody answered")

    def _lines(self, text: str) -> None:
        for line in unhidden(text).splitlines():
            self._say(line)
