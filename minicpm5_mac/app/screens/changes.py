"""The turns that changed files: what taking one back would do, and doing it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from minicpm5_mac.agent.undo.history import Change, TakenBack, UndoHistory, UndoTurn
from minicpm5_mac.app.screens.dialog import Dialog
from minicpm5_mac.app.tool_words import short_path
from minicpm5_mac.app.transcript.shown_text import ShownText
from minicpm5_mac.app.when import when
from minicpm5_mac.failure import Failure

NAMED_FILES = 3


class Changes(Dialog[None]):
    """A list of turns, the latest first, and below it the preview of taking the chosen one back.

    What was taken back stands in the list too: taking that back brings the changes again.
    """

    TITLE = "Changes to files"
    BINDINGS: ClassVar = [
        Binding("u,enter", "take_back", "take it back", priority=True),
        Binding("shift+up", "scroll(-1)", "preview up", show=False),
        Binding("shift+down", "scroll(1)", "preview down", show=False),
    ]
    DEFAULT_CSS = """
    Changes > .dialog-box {
        width: 96;
        height: 94%;
        padding: 0 1;
        & > OptionList { height: auto; max-height: 7; }
        & > .told { height: auto; max-height: 5; }
        & > .head { color: $text-muted; height: auto; margin: 1 0 0 0; }
        & > VerticalScroll { height: 1fr; padding: 0 1; background: $background;
            scrollbar-size-vertical: 1; }
        & > Footer { margin: 0; }
    }
    """

    def __init__(self, history: UndoHistory, workspace: Path, busy: Callable[[], bool]) -> None:
        """busy: whether a turn runs that may still change files."""
        super().__init__()
        self._history = history
        self._workspace = workspace
        self._busy = busy
        self._turns: tuple[UndoTurn, ...] = ()

    def content(self) -> ComposeResult:
        yield OptionList()
        yield Static(classes="told", markup=False)
        yield Static(classes="head", markup=False)
        with VerticalScroll():
            yield ShownText(diff=True)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).can_focus = True
        self._load()

    @property
    def chosen(self) -> UndoTurn | None:
        """The turn that is highlighted."""
        at = self.query_one(OptionList).highlighted
        return None if at is None or at >= len(self._turns) else self._turns[at]

    def action_scroll(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=3 * step, animate=False)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._preview()

    @work(exclusive=True, group="changes")
    async def _load(self) -> None:
        self._turns = await asyncio.to_thread(self._history.turns)
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(self._line(turn)) for turn in self._turns])
        options.focus()
        if self._turns:
            options.highlighted = 0
        self._preview()

    @work(exclusive=True, group="preview")
    async def _preview(self) -> None:
        turn, head = self.chosen, self.query_one(".head", Static)
        if turn is None:
            head.update("No turn has changed a file here.")
            self.query_one(ShownText).set("")
            return
        left = await asyncio.to_thread(self._history.obstacles, turn)
        changes = [change for change in turn.changes if change.path not in left]
        text = await asyncio.to_thread(self._diffs, changes)
        words = "Taking it back does this:" if changes else "It cannot be taken back now."
        head.update("\n".join([words, *self._left(list(left.items()))]))
        self.query_one(ShownText).set(text)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    @work(group="changes")
    async def action_take_back(self) -> None:
        """Undo the chosen turn; that can be undone in turn."""
        turn = self.chosen
        if turn is None:
            return
        if self._busy():
            self._say("A turn is running: stop it first, or wait.")
            return
        try:
            taken = await asyncio.to_thread(self._history.take_back, turn.id)
        except (Failure, OSError) as error:
            self._say(str(error))
            return
        self._say(self._told(taken))
        self._load()

    def _diffs(self, changes: Sequence[Change]) -> str:
        try:
            return "".join(self._history.diff(change, reverse=True) for change in changes)
        except OSError as error:
            return f"The kept contents cannot be read: {error.strerror or error}"

    def _told(self, taken: TakenBack) -> str:
        count = len(taken.turn.changes)
        text = f"Taken back: {count} file{'' if count == 1 else 's'}."
        text += " Taking back the topmost brings them again." if count else ""
        return "\n".join([text, *self._left(taken.left)])

    def _left(self, left: Sequence[tuple[str, str]]) -> list[str]:
        lines = [f"Left as it is: {self._short(path)}: {why}" for path, why in left[:NAMED_FILES]]
        if len(left) > NAMED_FILES:
            lines.append(f"and {len(left) - NAMED_FILES} more")
        return lines

    def _line(self, turn: UndoTurn) -> str:
        names = [self._short(change.path) for change in turn.changes]
        more = f" and {len(names) - NAMED_FILES} more" if len(names) > NAMED_FILES else ""
        what = "taken back" if turn.undoes else "changed"
        return f"{when(turn.made, time.time())}  {what} {', '.join(names[:NAMED_FILES])}{more}"

    def _short(self, path: str) -> str:
        inside = Path(path).is_relative_to(self._workspace)
        return short_path(Path(path).relative_to(self._workspace) if inside else path)

    def _say(self, text: str) -> None:
        self.query_one(".told", Static).update(text)
