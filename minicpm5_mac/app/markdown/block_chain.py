"""The way from a block down to its last part: list, item, quote, …, and the leaf at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from markdown_it.tree import SyntaxTreeNode

from minicpm5_mac.app.markdown.context import Context, Step
from minicpm5_mac.app.markdown.layout import step_into
from minicpm5_mac.app.markdown.parser import is_stand_in


@dataclass(frozen=True, slots=True)
class Place:
    """One level of the way down.

    parts: a list's items, or a container's blocks without the stub's; or the leaf alone.
    path: the containers around the parts; opened: the line on which each of these begins.
    number: of the last item, in an ordered list.
    resumed: whether the first part goes on with what the context names.
    """

    kind: Literal["items", "blocks", "leaf"]
    parts: list[SyntaxTreeNode]
    path: tuple[Step, ...] = ()
    opened: tuple[int, ...] = ()
    number: int | None = None
    resumed: bool = False


def start_line(node: SyntaxTreeNode) -> int:
    """The line a block begins on."""
    assert node.map is not None
    return node.map[0]


def block_chain(block: SyntaxTreeNode, context: Context, resumed: bool) -> Iterator[Place]:
    """The levels from a top-level block to its last leaf, outermost first.

    resumed: whether the block is the one that `context` goes on with.
    """
    node = block
    path: tuple[Step, ...] = ()
    opened: tuple[int, ...] = ()
    while True:
        if node.type in ("bullet_list", "ordered_list"):
            number = _last_number(node, context, len(path), resumed)
            yield Place("items", node.children, path, opened, number, resumed)
            resumed = resumed and len(path) < len(context.path) and len(node.children) == 1
            node = node.children[-1]
            depth = sum(step.kind == "item" for step in path)
            path = (*path, step_into(node, number, depth))
        elif node.type == "blockquote":
            resumed = resumed and len(path) < len(context.path)
            path = (*path, Step("quote"))
        else:
            yield Place("leaf", [node], path, opened, resumed=resumed)
            return
        opened = (*opened, start_line(node))
        blocks = node.children[_stand_ins(node, len(path), context) if resumed else 0 :]
        if not blocks:
            return
        yield Place("blocks", blocks, path, opened, resumed=resumed)
        resumed = resumed and len(blocks) == 1
        node = blocks[-1]


def _last_number(node: SyntaxTreeNode, context: Context, level: int, resumed: bool) -> int | None:
    if node.type == "bullet_list":
        return None
    first = int(node.attrs.get("start", 1))
    if resumed:
        known = context.path[level].number if level < len(context.path) else context.number
        first = first if known is None else known
    return first + len(node.children) - 1


def _stand_ins(node: SyntaxTreeNode, level: int, context: Context) -> int:
    """How many of a container's blocks belong to the stub and are not shown."""
    if level < len(context.path):
        return int(bool(node.children) and is_stand_in(node.children[0]))
    return int(level == len(context.path) and context.opener)
