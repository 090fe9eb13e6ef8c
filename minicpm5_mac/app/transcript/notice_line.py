"""A line between messages: something the user should know."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from minicpm5_mac.app.markdown import PlainText
from minicpm5_mac.app.transcript.entry import Entry

Severity = Literal["information", "warning", "error"]


class NoticeLine(PlainText):
    """A notice. severity: "information", "warning" or "error"; it is said in words by the text."""

    DEFAULT_CSS = Path(__file__).with_name("notice_line.tcss").read_text(encoding="utf-8")

    def __init__(self, text: str, severity: Severity = "information") -> None:
        super().__init__(text, classes=severity)

    @property
    def entry(self) -> Entry:
        """The notice as it would be loaded again."""
        return Entry(notice=self.text)
