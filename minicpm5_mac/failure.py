"""The one exception for what the user can do something about."""

from __future__ import annotations


class Failure(Exception):
    """What was wrong and what to do, in words for the user; never shown with a traceback.

    exit_code: what a command ends with (see `minicpm5-mac --help`).
    """

    def __init__(self, text: str, advice: str = "", exit_code: int = 1) -> None:
        super().__init__(text, advice)
        self.text = text
        self.advice = advice
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.text}\n{self.advice}" if self.advice else self.text
