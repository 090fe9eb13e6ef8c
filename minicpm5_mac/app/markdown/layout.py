"""Markdown's blocks as lines, each with the prefix (indent, bullet, quote bar) it stands behind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from textual.content import Content

from minicpm5_mac.app.markdown.code import CodeText
from minicpm5_mac.app.markdown.context import START, Context, Step
from minicpm5_mac.app.markdown.inline import inline_lines
from minicpm5_mac.app.markdown.lines import (
    EMPTY,
    BlankLine,
    CodeLine,
    LabelLine,
    Line,
    RuleLine,
    TextLine,
    plain,
)
from minicpm5_mac.app.markdown.parser import is_stand_in, last_line
from minicpm5_mac.app.markdown.table import Align, Cell, Table, TableRowLine, TableRule

_BULLETS = "•◦▪"
_HEADINGS = {"h1": ".markdown--h1", "h2": ".markdown--h2"}
_BAR = plain("▌ ", ".markdown--quote")


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands left of a block: `first` on its first row, `rest` on the others."""

    first: Content = EMPTY
    rest: Content = EMPTY
    depth: int = 0

    def below(self) -> Prefix:
        """For the blocks after the first one of the same container."""
        return Prefix(self.rest, self.rest, self.depth)

    def inside(self, mark: Content, indent: Content) -> Prefix:
        """For the blocks of a container: `mark` on its first row, `indent` on the others."""
        return Prefix(self.first + mark, self.rest + indent, self.depth)


@dataclass
class Layout:
    """The lines of some blocks, and what was met on the way.

    kept: code blocks of an earlier layout of the same beginning; they are used again in order,
    so that their colours stay while text is added.
    """

    kept: list[CodeText] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    codes: list[CodeText] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    def blocks(self, nodes: list[SyntaxTreeNode], context: Context = START) -> Layout:
        """Lay out top-level blocks, an empty row between each two."""
        for index, node in enumerate(nodes):
            if index:
                self.lines.append(BlankLine())
                self._block(node, Prefix(), None)
            elif context.path:
                self._resume(node, Prefix(), context, 0)
            else:
                if context.gap:
                    self.lines.append(BlankLine())
                self._block(node, Prefix(), context)
        return self

    def _resume(self, node: SyntaxTreeNode, prefix: Prefix, context: Context, level: int) -> None:
        """Enter a container that the context's path names; its first blocks are the stub's."""
        step = context.path[level]
        types = ("blockquote",) if step.kind == "quote" else ("bullet_list", "ordered_list")
        if node.type not in types:
            # A row of dashes below the line that opens the containers makes a table of them all.
            self._block(node, prefix, None)
        elif step.kind == "quote":
            self._resumed_children(node, prefix.inside(_BAR, _BAR), context, level + 1)
        else:
            indent = plain(" " * step.width)
            inner = replace(prefix.inside(indent, indent), depth=prefix.depth + 1)
            first, *others = node.children
            self._resumed_children(first, inner, context, level + 1)
            number = None if step.number is None else step.number + 1
            self._items(others, prefix, number, last_line(first))

    def _resumed_children(
        self, node: SyntaxTreeNode, prefix: Prefix, context: Context, level: int
    ) -> None:
        nodes = node.children[int(bool(node.children) and is_stand_in(node.children[0])) :]
        if not nodes:
            return
        if level < len(context.path):
            self._resume(nodes[0], prefix, context, level)
        else:
            if context.gap:
                self.lines.append(BlankLine(prefix.rest))
            self._block(nodes[0], prefix, context)
        self._children(nodes[1:], prefix, last_line(nodes[0]))

    def _children(self, nodes: list[SyntaxTreeNode], prefix: Prefix, end: int | None) -> None:
        """A container's blocks; an empty row between two only where the source has one.

        Markdown's own rule, that one blank line makes a whole list loose, would move what is
        shown already.
        """
        for node in nodes:
            if end is not None and node.map and node.map[0] > end:
                self.lines.append(BlankLine(prefix.rest))
            self._block(node, prefix, None)
            prefix = prefix.below()
            end = last_line(node)

    def _block(self, node: SyntaxTreeNode, prefix: Prefix, context: Context | None) -> None:
        match node.type:
            case "paragraph" | "heading":
                self._text(node, prefix, context)
            case "bullet_list" | "ordered_list":
                number = None
                if node.type == "ordered_list":
                    number = int(node.attrs.get("start", 1))
                    if context is not None and context.number is not None:
                        number = context.number
                self._items(node.children, prefix, number, None)
            case "blockquote":
                self._container(node, prefix.inside(_BAR, _BAR))
            case "fence" | "code_block":
                self._code(node, prefix, context)
            case "table":
                self._table(node, prefix, context)
            case "hr":
                self.lines.append(RuleLine(prefix.first))
            case _:
                for line in node.content.split("\n"):
                    self.lines.append(TextLine(plain(line), prefix.first, prefix.rest))

    def _container(self, node: SyntaxTreeNode, prefix: Prefix) -> None:
        if node.children:
            self._children(node.children, prefix, None)
        else:
            self.lines.append(TextLine(EMPTY, prefix.first, prefix.rest))

    def _items(
        self,
        items: list[SyntaxTreeNode],
        prefix: Prefix,
        number: int | None,
        end: int | None,
    ) -> None:
        if end is not None:
            prefix = prefix.below()
        for item in items:
            if end is not None and item.map and item.map[0] > end:
                self.lines.append(BlankLine(prefix.rest))
            mark = list_mark(item, number, prefix.depth)
            indent = plain(" " * cell_len(mark.plain))
            inner = replace(prefix.inside(mark, indent), depth=prefix.depth + 1)
            self._container(item, inner)
            prefix = prefix.below()
            end = last_line(item)
            number = None if number is None else number + 1

    def _text(self, node: SyntaxTreeNode, prefix: Prefix, context: Context | None) -> None:
        within = context.within if context else None
        style = ""
        if node.type == "heading" and within is None:
            style = _HEADINGS.get(node.tag, ".markdown--h3")
        lines = inline_lines(node.children[0], style=style)
        if within == "line":
            lines = lines[1:]
        elif within == "word":
            lines[0] = lines[0][1:]
        first = prefix.first
        for index, line in enumerate(lines):
            continues = within == "word" and index == 0
            self.lines.append(TextLine(line, first, prefix.rest, continues))
            first = prefix.rest
        if node.type == "heading" and within is not None:
            # The line of dashes below a paragraph that is too long to be made a heading of.
            self.lines.append(RuleLine(prefix.rest))

    def _code(self, node: SyntaxTreeNode, prefix: Prefix, context: Context | None) -> None:
        words = node.info.split(maxsplit=1) if node.type == "fence" else []
        content = node.content.removesuffix("\n")
        lines = content.split("\n") if node.content else []
        if context is not None and context.within == "code" and context.code is not None:
            code, start = context.code, context.committed
        else:
            code, start = self._code_text(words[0] if words else ""), 0
            if words or not lines:
                self.lines.append(LabelLine(words[0] if words else "", prefix.first))
                prefix = prefix.below()
        code.replace(start, lines)
        self.codes.append(code)
        for number in range(start, len(code.lines)):
            self.lines.append(CodeLine(code, number, prefix.first))
            prefix = prefix.below()

    def _code_text(self, language: str) -> CodeText:
        index = len(self.codes)
        if index < len(self.kept) and self.kept[index].language == language:
            return self.kept[index]
        return CodeText(language)

    def _table(self, node: SyntaxTreeNode, prefix: Prefix, context: Context | None) -> None:
        within = context.within if context else None
        rows = [row for part in node.children for row in part.children]
        if within == "table" and context is not None and context.table is not None:
            table, rows = context.table, rows[1:]
        else:
            table = Table([_align(cell) for cell in rows[0].children])
        self.tables.append(table)
        for number, row in enumerate(rows):
            is_header = number == 0 and within != "table"
            style = ".markdown--strong" if is_header else ""
            cells: list[Cell] = [
                inline_lines(cell.children[0], style=style) for cell in row.children
            ]
            if is_header and within == "word":
                cells[0][0] = cells[0][0][1:]
            table.measure(cells)
            self.lines.append(TableRowLine(table, cells, prefix.first))
            prefix = prefix.below()
            if is_header:
                self.lines.append(TableRule(table, prefix.first))


def list_mark(item: SyntaxTreeNode, number: int | None, depth: int) -> Content:
    """The bullet or number of an item, with the space behind it."""
    mark = _BULLETS[min(depth, 2)] if number is None else f"{number}{item.markup}"
    return plain(f"{mark} ", ".markdown--bullet")


def step_into(item: SyntaxTreeNode, number: int | None, depth: int) -> Step:
    """The step of a path that leads into a list's item."""
    return Step("item", number, cell_len(list_mark(item, number, depth).plain))


def _align(cell: SyntaxTreeNode) -> Align:
    style = str(cell.attrs.get("style", ""))
    if style.endswith("center"):
        return "center"
    return "right" if style.endswith("right") else "left"
