"""Markdown's blocks as lines, each with the prefix (indent, bullet, quote bar) it stands behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len
from textual.content import Content

from minicpm5_mac.app.markdown.code import CodeText
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
from minicpm5_mac.app.markdown.parser import last_line
from minicpm5_mac.app.markdown.table import Align, Cell, Table, TableRowLine, TableRule

_BULLETS = "•◦▪"
_HEADINGS = {"h1": ".markdown--h1", "h2": ".markdown--h2"}


@dataclass
class Laid:
    """The lines of some blocks, and the code blocks among them."""

    lines: list[Line] = field(default_factory=list)
    codes: list[CodeText] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands left of a block: `first` on its first row, `rest` on the others."""

    first: Content = EMPTY
    rest: Content = EMPTY
    depth: int = 0

    def below(self) -> Prefix:
        """For the blocks after the first one of the same container."""
        return Prefix(self.rest, self.rest, self.depth)


def lay_out(blocks: list[SyntaxTreeNode]) -> Laid:
    """The lines of top-level blocks, a blank one between each two."""
    laid = Laid()
    for index, block in enumerate(blocks):
        if index:
            laid.lines.append(BlankLine())
        lay_block(block, Prefix(), laid)
    return laid


def lay_block(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    """Append one block's lines to `laid`."""
    match node.type:
        case "paragraph" | "heading":
            _lay_text(node, prefix, laid)
        case "bullet_list" | "ordered_list":
            _lay_list(node, prefix, laid)
        case "blockquote":
            bar = plain("▌ ", ".markdown--quote")
            inner = Prefix(prefix.first + bar, prefix.rest + bar, prefix.depth)
            _lay_children(node, inner, laid)
        case "fence" | "code_block":
            _lay_code(node, prefix, laid)
        case "table":
            _lay_table(node, prefix, laid)
        case "hr":
            laid.lines.append(RuleLine(prefix.first))
        case _:
            for line in node.content.split("\n"):
                laid.lines.append(TextLine(plain(line), prefix.first, prefix.rest))


def _lay_children(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    """A container's blocks; an empty row between two only where the source has one.

    Markdown's rule, that one blank line makes the whole list loose, would move what is shown.
    """
    end = None
    for child in node.children:
        if end is not None and child.map and child.map[0] > end:
            laid.lines.append(BlankLine(prefix.rest))
        lay_block(child, prefix, laid)
        prefix = prefix.below()
        end = last_line(child)
    if not node.children:
        laid.lines.append(TextLine(EMPTY, prefix.first, prefix.rest))


def _lay_list(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    end = None
    for item in node.children:
        if end is not None and item.map and item.map[0] > end:
            laid.lines.append(BlankLine(prefix.rest))
        mark = _BULLETS[min(prefix.depth, 2)] if number is None else f"{number}{item.markup}"
        bullet = plain(f"{mark} ", ".markdown--bullet")
        indent = " " * cell_len(bullet.plain)
        inner = Prefix(prefix.first + bullet, prefix.rest + indent, prefix.depth + 1)
        _lay_children(item, inner, laid)
        prefix = prefix.below()
        end = last_line(item)
        number = None if number is None else number + 1


def _lay_text(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    style = _HEADINGS.get(node.tag, ".markdown--h3") if node.type == "heading" else ""
    first = prefix.first
    for line in inline_lines(node.children[0], style=style):
        laid.lines.append(TextLine(line, first, prefix.rest))
        first = prefix.rest


def _lay_code(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    words = node.info.split(maxsplit=1) if node.type == "fence" else []
    code = CodeText(words[0] if words else "")
    laid.codes.append(code)
    if words:
        laid.lines.append(LabelLine(words[0], prefix.first))
        prefix = prefix.below()
    content = node.content.removesuffix("\n")
    for line in content.split("\n"):
        laid.lines.append(CodeLine(code, code.append(line), prefix.first))
        prefix = prefix.below()


def _lay_table(node: SyntaxTreeNode, prefix: Prefix, laid: Laid) -> None:
    rows = [row for part in node.children for row in part.children]
    table = Table([_align(cell) for cell in rows[0].children])
    for number, row in enumerate(rows):
        style = ".markdown--strong" if number == 0 else ""
        cells: list[Cell] = [inline_lines(cell.children[0], style=style) for cell in row.children]
        table.measure(cells)
        laid.lines.append(TableRowLine(table, cells, prefix.first))
        prefix = prefix.below()
        if number == 0:
            laid.lines.append(TableRule(table, prefix.first))


def _align(cell: SyntaxTreeNode) -> Align:
    style = str(cell.attrs.get("style", ""))
    if style.endswith("center"):
        return "center"
    return "right" if style.endswith("right") else "left"
