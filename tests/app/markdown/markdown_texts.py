"""Look-alikes of Markdown for the property tests: pieces that mean something, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "- ", "  - ", "   ", "1. ", "2. ", "    ", "> ", "\n", "\n", "\n\n", "```", "```py\n", "~~~",
    "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "---\n", "===\n", "# ", "word ", "foo", "*", "**", "`",
    "[a](http://b)", " ", "\t", "中文，", "10) ", "+ ", "<br>", "&#10;", "\\", "x", "\r\n", "\r",
    "\u2028", "- - ", "> - ", "-\n", "1.\n", ">\n", "* * *\n", "\x1b[31m", "❤️", "👩‍👩‍👧", "é",
)  # fmt: skip

markdown_texts = st.lists(st.sampled_from(PIECES), max_size=50).map("".join)
