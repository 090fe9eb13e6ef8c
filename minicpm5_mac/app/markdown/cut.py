"""Where a growing text may be cut, so that what is before the cut is finished for good.

Only complete lines count: the end of a line can still change what its beginning means. Between
top-level blocks a cut changes nothing. Within a block one is made when the open text has become
long, at the outermost place that ends something: before the last item, inner block, line of code
or row. A paragraph alone has no such place; it is cut between words, and emphasis ends there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from markdown_it.tree import SyntaxTreeNode

from minicpm5_mac.app.markdown.block_chain import Place, block_chain, start_line
from minicpm5_mac.app.markdown.context import BETWEEN, Context
from minicpm5_mac.app.markdown.parser import STAND_IN, is_stand_in, last_line, parse
from minicpm5_mac.app.markdown.table import MEASURED_ROWS
from minicpm5_mac.visible_text import joins_previous

_QUOTE = r"[ \t]*>[ \t]?"
_MARKER = r"[ \t]*(?:>[ \t]?|(?:[-+*]|\d{1,9}[.)])(?:[ \t]{1,4}(?=\S)|[ \t]|$))"


@dataclass(frozen=True, slots=True)
class Cut:
    """Cut the text at `offset`; what follows begins in `context`."""

    offset: int
    context: Context


@dataclass(frozen=True, slots=True)
class Limits:
    """Characters.

    open: a text no longer than this is cut between top-level blocks only; paragraph: one no
    longer than this is not cut within a paragraph.
    step: the distance of the places at which cuts are looked for. These follow from the text
    alone, so that the same text gives the same rows in whatever pieces it came.
    """

    open: int = 1500
    paragraph: int = 2000
    step: int = 500


def find_cut(text: str, context: Context, limits: Limits) -> Cut | None:
    """A place to cut `text`, which begins in `context`, or None."""
    complete = _Source(context.stub, text[: text.rfind("\n") + 1])
    blocks = parse(complete.text) if len(complete.text) > len(context.stub) else []
    if len(blocks) > 1:
        return complete.cut(start_line(blocks[-1]), BETWEEN)
    if len(text) <= limits.open:
        return None
    for block in blocks:
        for place in block_chain(block, context, resumed=True):
            if place.kind == "leaf":
                cut = _within_leaf(complete, place, context)
            else:
                cut = _between(complete, place)
            if cut is not None:
                return cut
    if len(text) <= limits.paragraph:
        return None
    return _within_paragraph(_Source(context.stub, text), context)


class _Source:
    """Stub and text as one, by lines."""

    def __init__(self, stub: str, text: str) -> None:
        self.stub = stub
        self.text = stub + text
        self.lines = self.text.split("\n")

    def offset(self, line: int) -> int:
        """The offset of a line in the text without the stub; negative in the stub."""
        return sum(len(line) + 1 for line in self.lines[:line]) - len(self.stub)

    def cut(self, line: int, context: Context) -> Cut | None:
        """The cut before `line`, if the rest can be read in `context` alone."""
        return self.cut_at(self.offset(line), context)

    def cut_at(self, offset: int, context: Context) -> Cut | None:
        """The cut at an offset of the text, if the rest can be read in `context` alone."""
        if offset <= 0:
            return None
        rest = self.text[len(self.stub) + offset :]
        if context.stub and not _leads_to(parse(context.stub + rest), context):
            return None
        return Cut(offset, context)


def _leads_to(blocks: list[SyntaxTreeNode], context: Context) -> bool:
    """Whether the stub opened the containers it was made to open."""
    nodes = blocks
    for step in context.path:
        if nodes and is_stand_in(nodes[0]):
            nodes = nodes[1:]
        if not nodes:
            return False
        node = nodes[0]
        if step.kind == "quote":
            if node.type != "blockquote":
                return False
        elif node.type not in ("bullet_list", "ordered_list"):
            return False
        else:
            node = node.children[0]
        nodes = node.children
    expected = {
        None: None,
        "word": ("paragraph", "heading", "table"),
        "line": ("paragraph", "heading"),
        "code": ("fence", "code_block"),
        "table": ("table",),
    }[context.within]
    if context.opener:
        if not nodes or not is_stand_in(nodes[0]):
            return False
        nodes = nodes[1:]
    return expected is None or (bool(nodes) and nodes[0].type in expected)


def _between(source: _Source, place: Place) -> Cut | None:
    """A cut before the last of several parts."""
    if len(place.parts) < 2:
        return None
    line = start_line(place.parts[-1])
    gap = line > last_line(place.parts[-2])
    number = place.number if place.kind == "items" else None
    context = Context(path=place.path, gap=gap, number=number)
    if place.path:
        context = replace(context, stub=_stub(source, place), opener=True)
    return source.cut(line, context)


def _within_leaf(source: _Source, place: Place, context: Context) -> Cut | None:
    """A cut inside a code block that is open, or inside a table."""
    node = place.parts[0]
    first, end = node.map or (0, 0)
    head: list[str] = []
    if node.type == "fence":
        if end - first - 1 > node.content.count("\n"):
            return None
        line = _filled_line(source, first + 2, end)
        head = source.lines[first : first + 1]
    elif node.type == "code_block":
        line = _filled_line(source, first + 1, end)
    elif node.type == "table":
        known = place.resumed and context.within == "table"
        line = end - 1 if end - first - 2 > (1 if known else MEASURED_ROWS) else None
        head = source.lines[first : first + 2]
    else:
        return None
    if line is None:
        return None
    # Containers that begin on the head's own line are opened by it.
    above = [line for line in place.opened if line < first or not head]
    inner = Context(
        _stub(source, place, above) + "".join(f"{line}\n" for line in head),
        place.path,
        opener=bool(place.path) and len(above) == len(place.opened),
        within="table" if node.type == "table" else "code",
    )
    return source.cut(line, inner)


def _filled_line(source: _Source, start: int, end: int) -> int | None:
    """The last line of a range that is not blank and follows one that is not."""
    for line in range(min(end, len(source.lines)) - 1, start - 1, -1):
        if source.lines[line].strip(" \t>") and source.lines[line - 1].strip(" \t>"):
            return line
    return None


def _within_paragraph(source: _Source, context: Context) -> Cut | None:
    """A cut inside the paragraph at the end, if there is one."""
    blocks = parse(source.text)
    if not blocks:
        return None
    *_, place = block_chain(blocks[-1], context, resumed=len(blocks) == 1)
    if place.kind != "leaf" or place.parts[0].type != "paragraph":
        return None
    start = max(0, source.offset(start_line(place.parts[0])))
    text = source.text[len(source.stub) :]
    offset = _word_end(text, start + (len(text) - start) // 2)
    within = "line" if text[offset - 1] == "\n" else "word"
    opened = _stub(source, place).rsplit(STAND_IN, 1)[0]
    stub = opened + STAND_IN + ("\n" if within == "line" else " ")
    return source.cut_at(offset, Context(stub, place.path, within=within))


def _word_end(text: str, start: int) -> int:
    """The best offset behind `start` to cut at: outside markup, after a line, a space, anywhere."""
    best, rank = len(text) - 1, 0
    for match in re.finditer(r"\n|(?<=[^\s>])[ \t]+(?=\S)", text[start:-1]):
        offset = start + match.end()
        here = 1 + (match.group() == "\n") + 2 * _is_balanced(text[:offset])
        if here >= rank:
            best, rank = offset, here
    if rank == 0:
        while best > start + 1 and joins_previous(text[best]):
            best -= 1
    return best


def _is_balanced(text: str) -> bool:
    """Whether the marks of emphasis, code and links that are open are closed, by their number."""
    return (
        text.count("*") % 2 == 0
        and text.count("`") % 2 == 0
        and text.count("~~") % 2 == 0
        and text.count("[") == text.count("]")
        and text.count("(") == text.count(")")
    )


def _stub(source: _Source, place: Place, opened: list[int] | None = None) -> str:
    """The lines that open containers again: their marks and the stand-in, an empty line between.

    opened: the lines on which those containers begin; by default all of the place's.
    """
    lines = []
    steps = list(zip(place.path, place.opened, strict=True))
    for line in sorted(set(place.opened if opened is None else opened)):
        before = sum(step.kind == "quote" and at < line for step, at in steps)
        here = sum(at == line for _, at in steps)
        pattern = f"(?:{_QUOTE}){{{before}}}(?:{_MARKER}){{{here}}}"
        match = re.match(pattern, source.lines[line])
        marks = match.group() if match else ""
        marks = marks if marks[-1:] in (" ", "\t") else f"{marks} "
        lines += [f"{marks}{STAND_IN}", re.sub(r"[^>\t]", " ", marks).rstrip()]
    return "".join(f"{line}\n" for line in lines)
