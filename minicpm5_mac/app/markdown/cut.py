"""Where a growing text may be cut, so that what is before the cut is finished for good.

Only complete lines count: the end of a line can still change what its beginning means. Between
top-level blocks a cut changes nothing; within a block it is made when the open text has become
long, at the outermost place that ends something: before the last item, row, line, or inner block.
A paragraph alone has no such place; it is cut between words, and emphasis ends there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from markdown_it.tree import SyntaxTreeNode

from minicpm5_mac.app.markdown.context import BETWEEN, STAND_IN, Context, Step
from minicpm5_mac.app.markdown.layout import step_into
from minicpm5_mac.app.markdown.parser import last_line, parse
from minicpm5_mac.app.markdown.table import MEASURED_ROWS
from minicpm5_mac.app.markdown.visible import joins_previous

_QUOTE = r"[ \t]*>[ \t]?"
_MARKER = r"[ \t]*(?:>[ \t]?|(?:[-+*]|\d{1,9}[.)])(?:[ \t]{1,4}(?=\S)|[ \t]|$))"


@dataclass(frozen=True, slots=True)
class Cut:
    """Cut the text at `offset`; what follows begins in `context`."""

    offset: int
    context: Context


def find_cut(text: str, context: Context, limit: int) -> Cut | None:
    """A place to cut `text`, which begins in `context`, or None.

    limit: characters; below it a block is not cut within.
    """
    complete = text[: text.rfind("\n") + 1]
    if complete:
        source = _Source(context.stub, complete)
        blocks = parse(source.text)
        if len(blocks) > 1:
            return Cut(source.offset(_start(blocks[-1])), BETWEEN)
        if blocks and len(text) > limit:
            found = _within(source, blocks[0], context)
            if found is not None:
                return found
    if len(text) > limit:
        return _within_paragraph(_Source(context.stub, text), context)
    return None


class _Source:
    """Stub and text as one, by lines."""

    def __init__(self, stub: str, text: str) -> None:
        self.stub = stub
        self.text = stub + text
        self.lines = self.text.split("\n")

    def offset(self, line: int) -> int:
        """The offset of a line in the text without the stub; negative in the stub."""
        return sum(len(line) + 1 for line in self.lines[:line]) - len(self.stub)


def _start(node: SyntaxTreeNode) -> int:
    assert node.map is not None
    return node.map[0]


def _within(source: _Source, block: SyntaxTreeNode, context: Context) -> Cut | None:
    """A cut inside the only block of complete lines."""
    path: list[Step] = []
    opened: list[int] = []
    node = block
    resumed = True  # Whether `node` is on the path of the text's own context, or its first block.
    number: int | None
    while True:
        level = len(path)
        if node.type in ("bullet_list", "ordered_list"):
            number = None
            if node.type == "ordered_list":
                number = int(node.attrs.get("start", 1))
                if resumed and level < len(context.path):
                    number = context.path[level].number
                elif resumed and context.number is not None:
                    number = context.number
            items = node.children
            last = items[-1]
            if len(items) > 1:
                at = None if number is None else number + len(items) - 1
                gap = _start(last) > last_line(items[-2])
                inner = _Inner(tuple(path), tuple(opened))
                return inner.between(source, _start(last), gap, at, context)
            path.append(step_into(last, number, _depth(path)))
            opened.append(_start(last))
            node = last
        elif node.type == "blockquote":
            path.append(Step("quote"))
            opened.append(_start(node))
        else:
            return _within_leaf(source, node, tuple(path), tuple(opened), context, resumed)
        children = node.children
        if not children:
            return None
        stand_ins = _stand_ins(children, len(path), context) if resumed else 0
        if len(children) > stand_ins + 1:
            last = children[-1]
            gap = _start(last) > last_line(children[-2])
            inner = _Inner(tuple(path), tuple(opened))
            return inner.between(source, _start(last), gap, None, context)
        if len(children) == stand_ins:
            return None
        resumed = resumed and (stand_ins > 0 or len(path) <= len(context.path))
        node = children[-1]


def _depth(path: list[Step]) -> int:
    return sum(step.kind == "item" for step in path)


def _stand_ins(children: list[SyntaxTreeNode], level: int, context: Context) -> int:
    """How many of a container's blocks belong to the stub and are not shown."""
    if level < len(context.path):
        return int(children[0].type == "paragraph")
    return int(level == len(context.path) and context.opener)


@dataclass(frozen=True, slots=True)
class _Inner:
    """The containers around a place, and the lines on which each was opened."""

    path: tuple[Step, ...]
    opened: tuple[int, ...]

    def stub_lines(self, source: _Source) -> list[str]:
        """One line for each line that opens containers: their marks and the stand-in."""
        lines = []
        for line in sorted(set(self.opened)):
            before = sum(
                step.kind == "quote" and at < line
                for step, at in zip(self.path, self.opened, strict=True)
            )
            here = sum(at == line for at in self.opened)
            pattern = f"(?:{_QUOTE}){{{before}}}(?:{_MARKER}){{{here}}}"
            match = re.match(pattern, source.lines[line])
            if match is None:
                return []
            marks = match.group()
            lines.append((marks if marks[-1:] in " \t" else f"{marks} ") + STAND_IN)
        return lines

    def indent(self, stub_lines: list[str]) -> str:
        """What a later line in the same containers starts with."""
        return re.sub(r"[^>\t]", " ", stub_lines[-1].removesuffix(STAND_IN)) if stub_lines else ""

    def between(
        self, source: _Source, line: int, gap: bool, number: int | None, old: Context
    ) -> Cut | None:
        """A cut before a block or item that starts on `line`."""
        if not self.path:
            return _checked(source, line, Context(gap=gap, number=number))
        lines = self.stub_lines(source)
        if not lines:
            return None
        stub = "\n".join([*lines, self.indent(lines).rstrip(), ""])
        context = Context(stub, self.path, opener=True, gap=gap, number=number)
        return _checked(source, line, context)

    def inside(self, source: _Source, line: int, head: list[str], context: Context) -> Cut | None:
        """A cut before `line` of a code block or table; head: the lines that open it again."""
        lines = self.stub_lines(source) if self.path else []
        if self.path and not lines:
            return None
        blank = [self.indent(lines).rstrip()] if lines else []
        stub = "\n".join([*lines, *blank, *head, ""]) if lines or head else ""
        context = replace(context, stub=stub, path=self.path, opener=bool(lines))
        return _checked(source, line, context)


def _within_leaf(
    source: _Source,
    node: SyntaxTreeNode,
    path: tuple[Step, ...],
    opened: tuple[int, ...],
    old: Context,
    resumed: bool,
) -> Cut | None:
    """A cut inside a block that holds no blocks."""
    inner = _Inner(path, opened)
    first, end = node.map or [0, 0]
    if node.type == "fence":
        if end < len(source.lines) - 1 or _is_closed(node, source):
            return None
        line = _last_filled(source, first + 1, end)
        head = [_without_marks(source.lines[first], inner, first, source)]
        return inner.inside(source, line, head, Context(within="code")) if line else None
    if node.type == "code_block":
        line = _last_filled(source, first + 1, end)
        return inner.inside(source, line, [], Context(within="code")) if line else None
    if node.type == "table":
        rows = end - first - 2
        if rows <= MEASURED_ROWS + 1:
            return None
        head = [_without_marks(source.lines[first], inner, first, source), source.lines[first + 1]]
        return inner.inside(source, end - 1, head, Context(within="table"))
    return None


def _last_filled(source: _Source, start: int, end: int) -> int | None:
    """The last line of a range that is not blank, None where there is none."""
    for line in range(end - 1, start - 1, -1):
        if line < len(source.lines) and source.lines[line].strip(" \t>"):
            return line
    return None
