"""Where in the block structure a piece of Markdown begins, when it is cut off from its start.

A long list, quote, code block, table or paragraph is finished piece by piece. What follows a cut
is parsed behind a few stand-in lines (the stub) that open the same containers again, and laid out
without showing these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minicpm5_mac.app.markdown.code import CodeText
from minicpm5_mac.app.markdown.table import Table


@dataclass(frozen=True, slots=True)
class Step:
    """One container around the cut: a quote, or an item of a list with its number, if it has one.

    width: cells its indent takes.
    """

    kind: Literal["quote", "item"]
    number: int | None = None
    width: int = 2


@dataclass(frozen=True, slots=True)
class Context:
    """What the text behind a cut needs to know of the text before it.

    stub: source to put before it. path: the containers it is in, outermost first.
    opener: whether the innermost container holds a stand-in paragraph that is not shown.
    gap: whether an empty row belongs before it.
    number: the number of its first item, where it starts with an item of an ordered list.
    within: the kind of block that was cut: "word" is a paragraph cut within a line, "line" one
        cut at a line break; None: the cut is between blocks. code, table: the block that was cut.
    """

    stub: str = ""
    path: tuple[Step, ...] = ()
    opener: bool = False
    gap: bool = False
    number: int | None = None
    within: Literal["word", "line", "code", "table"] | None = None
    code: CodeText | None = None
    table: Table | None = None
    committed: int = 0


START = Context()
BETWEEN = Context(gap=True)
