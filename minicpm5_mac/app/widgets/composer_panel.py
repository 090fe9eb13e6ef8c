"""The composer with what belongs to it: candidates above it, the attached files, the draft."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static, TextArea

from minicpm5_mac.app.attachments import files_below, mention_text, mentioned_files
from minicpm5_mac.app.completion import Candidate, complete, wants_files
from minicpm5_mac.app.widgets.completion_list import CompletionList
from minicpm5_mac.app.widgets.composer import Composer

DRAFT_SECONDS = 0.3
"""After this pause in typing the draft is kept: no more than this is lost by a crash."""
FILES_SECONDS = 20.0
"""How long a list of files is good for before the folder is read again."""


class ComposerPanel(Vertical):
    """Coordinates the composer and its list; says when a message is sent or a draft changed."""

    BINDINGS: ClassVar = [
        Binding("f4", "expand", "Whole window, and back"),
    ]
    DEFAULT_CSS = """
    ComposerPanel {
        height: auto;
        &.-expanded { height: 1fr; }
        & > .attached {
            display: none;
            height: auto;
            margin: 0 3;
            color: $text-muted;
            &.-any { display: block; }
        }
    }
    """

    @dataclass
    class DraftChanged(Message):
        """The unsent text, some moments after it changed."""

        text: str

    @dataclass
    class Expanded(Message):
        """The composer took the window, or gave it back."""

        expanded: bool

    def __init__(self, folder: Path, *, id: str | None = None) -> None:
        """folder: where `@file` looks."""
        super().__init__(id=id)
        self.folder = folder
        self._files: list[str] = []
        self._files_read = 0.0
        self._pause: Timer | None = None
        self._closed_at: str | None = None

    def compose(self) -> ComposeResult:
        yield CompletionList()
        yield Static(classes="attached", markup=False)
        yield Composer()

    def on_mount(self) -> None:
        self.composer.steer = self._steer

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    def action_expand(self) -> None:
        expanded = not self.has_class("-expanded")
        self.set_class(expanded, "-expanded")
        self.composer.set_class(expanded, "-expanded")
        self.post_message(self.Expanded(expanded))

    # Completion ---------------------------------------------------------------------------------

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._offer()
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(DRAFT_SECONDS, self._settled)

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        if self.query_one(CompletionList).offering:
            self._offer()

    def _offer(self) -> None:
        composer = self.composer
        line = composer.line_to_caret
        if wants_files(line) and time.monotonic() - self._files_read > FILES_SECONDS:
            self._files_read = time.monotonic()
            self._read_files()
        first_line = composer.cursor_location[0] == 0
        if line != self._closed_at:
            self._closed_at = None
        wanted = composer.has_focus and self._closed_at is None
        completion = complete(line, first_line, self._files) if wanted else None
        self.query_one(CompletionList).offer(completion)

    @work(exclusive=True, group="files")
    async def _read_files(self) -> None:
        self._files = await asyncio.to_thread(files_below, self.folder)
        self._offer()

    def _steer(self, key: str) -> bool:
        """Act on a key while candidates are shown; False where it is the composer's own."""
        self._offer()  # for the text of now: the list follows typing a moment later
        offered = self.query_one(CompletionList)
        if not offered.offering:
            return False
        match key:
            case "up":
                offered.step(-1)
            case "down":
                offered.step(1)
            case "escape":
                self._close_list()
            case "enter" if self.composer.text.strip() == "/" and not offered.stepped:
                pass  # no letter and no arrow has named a command yet
            case _:
                self._take(offered.chosen(), submit=key == "enter")
        return True

    def on_completion_list_taken(self, event: CompletionList.Taken) -> None:
        event.stop()
        self._take(event.candidate, submit=False)

    def _take(self, candidate: Candidate | None, submit: bool) -> None:
        offered = self.query_one(CompletionList)
        if candidate is None or offered.completion is None:
            return
        composer = self.composer
        caret = composer.cursor_location
        start = offered.completion.start
        whole = composer.line_to_caret[start:] == candidate.insert.rstrip()
        self._close_list()
        if not whole:
            composer.replace(candidate.insert, (caret[0], start), caret)
            self._close_list()
        # Enter on a command that needs nothing more runs it; on anything else it only fills in.
        command = start == 0 and candidate.insert.startswith("/")
        if submit and command and (whole or not candidate.insert.endswith(" ")):
            composer.submit()

    def _close_list(self) -> None:
        self._closed_at = self.composer.line_to_caret
        self.query_one(CompletionList).offer(None)

    # Draft and attachments ----------------------------------------------------------------------

    def _settled(self) -> None:
        text = self.composer.text
        self.post_message(self.DraftChanged(text))
        self._find_attached(text)

    @work(exclusive=True, group="attached")
    async def _find_attached(self, text: str) -> None:
        shown = await asyncio.to_thread(_sizes, text, self.folder) if "@" in text else []
        strip = self.query_one(".attached", Static)
        strip.set_class(bool(shown), "-any")
        strip.update("attached: " + "  ".join(shown))


def _sizes(text: str, folder: Path) -> list[str]:
    shown = []
    for path in mentioned_files(text, folder):
        try:
            size = (folder / Path(path).expanduser()).stat().st_size
        except OSError:
            continue
        shown.append(f"{mention_text(path)} {_size(size)}")
    return shown


def _size(count: int) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count:.0f} {unit}"
        count = round(count / 1000)
    return ""
