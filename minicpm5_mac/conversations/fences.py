"""Markdown code fences: around text that may hold fences itself, and closed where they are open."""

from __future__ import annotations

import re

_RUN = re.compile(r"`+")
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)$", re.MULTILINE)


def fenced(text: str, language: str = "") -> str:
    """A code block with a fence longer than any run of backticks in the text."""
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def closed_fences(text: str) -> str:
    """Markdown text in which a code block that was left open at the end is closed."""
    fence = ""
    for mark, rest in _FENCE.findall(text):
        if not fence:
            fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return f"{text.rstrip()}\n{fence}" if fence else text
