"""The log files of the app and of the model process."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static, TextArea

from minicpm5_mac.app.screens.dialog import Dialog

TAIL_BYTES = 200_000
"""As much of a log's end as is read: what happened last is what is looked for."""


def log_files(folder: Path) -> list[Path]:
    """Log files, the one written last first."""
    try:
        files = [path for path in folder.iterdir() if path.is_file()]
        return sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return []


def log_tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The last `limit` bytes of a log, from the first whole line."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    return text if size <= limit else text.partition("\n")[2]


class LogViewer(Dialog[None]):
    """One log at a time, at its end; it is text that can be selected and copied."""

    TITLE = "Log"
    BINDINGS: ClassVar = [
        Binding("n,right", "next_file", "Next file", key_display="n"),
        Binding("r", "read", "Read again"),
    ]
    DEFAULT_CSS = """
    LogViewer > .dialog-box { width: 100%; height: 94%; }
    LogViewer TextArea { height: 1fr; border: none; padding: 0; }
    LogViewer TextArea:focus { border: none; }
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._at = 0

    def content(self) -> ComposeResult:
        yield Static(classes="dialog-note", markup=False)
        yield TextArea(read_only=True, soft_wrap=True, highlight_cursor_line=False)

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()
        self.action_read()

    def action_read(self) -> None:
        files = log_files(self._folder)
        note, area = self.query_one(Static), self.query_one(TextArea)
        if not files:
            note.update(f"There is no log yet in {self._folder}.")
            return
        path = files[self._at % len(files)]
        note.update(f"{path}  ({self._at % len(files) + 1} of {len(files)})")
        area.load_text(log_tail(path))
        area.move_cursor(area.document.end)

    def action_next_file(self) -> None:
        self._at += 1
        self.action_read()
