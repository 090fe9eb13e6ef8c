"""The Markdown that is understood: CommonMark with tables and strikethrough.

Two things are left out, so that a block once finished never changes: link reference definitions
(one at the end of a reply would change its beginning) and HTML, which is shown as it is written.
"""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

# The stub's word: a paragraph that keeps a container open or that the text goes on from. A Unicode
# noncharacter, which no text has a reason to hold.
STAND_IN = "\ufdd0"

_parser = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable(["reference", "html_block", "html_inline"])
)


def parse(source: str) -> list[SyntaxTreeNode]:
    """The top-level blocks of `source`; a node's `map` is its range of lines."""
    tokens = _parser.parse(source)
    return list(SyntaxTreeNode(tokens).children) if tokens else []


def is_stand_in(node: SyntaxTreeNode) -> bool:
    """Whether a block is a stub's paragraph, which is not shown."""
    return node.type == "paragraph" and node.children[0].content == STAND_IN


def last_line(node: SyntaxTreeNode) -> int:
    """The line after the last one of `node` that is not blank (a list's `map` may hold blanks)."""
    if node.type in ("bullet_list", "ordered_list", "list_item", "blockquote"):
        if node.children:
            return last_line(node.children[-1])
        return node.map[0] + 1 if node.map else 0
    return node.map[1] if node.map else 0
