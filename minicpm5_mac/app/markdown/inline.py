"""Inline Markdown (emphasis, code, links, line breaks) as Textual Content."""

from __future__ import annotations

import re

from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.style import Style

from minicpm5_mac.app.markdown.parser import STAND_IN
from minicpm5_mac.visible_text import visible

_STYLES = {
    "strong": ".markdown--strong",
    "em": ".markdown--em",
    "s": ".markdown--strike",
    "link": ".markdown--link",
}
_line_break_tag = re.compile(r"<br\s*/?>", re.IGNORECASE)
LINK_META = "markdown_link"


class InlineText:
    """Text and spans, growing; `lines` cuts them at line breaks."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.length = 0
        self.spans: list[Span] = []

    def put(self, text: str) -> None:
        self.text.append(text)
        self.length += len(text)

    def mark(self, start: int, style: str | Style) -> None:
        if start < self.length:
            self.spans.append(Span(start, self.length, style))

    def lines(self) -> list[Content]:
        text = "".join(self.text)
        whole = Content(text, self.spans, strip_control_codes=False)
        if "\n" not in text:
            return [whole]
        lines, start = [], 0
        for part in text.split("\n"):
            lines.append(whole[start : start + len(part)])
            start += len(part) + 1
        return lines


def inline_lines(node: SyntaxTreeNode, style: str = "") -> list[Content]:
    """The lines of an `inline` node, all in `style`.

    A line break in the source is one in the result: a model that breaks lines means it (verse,
    addresses), and Chinese has no spaces to join lines with.
    """
    out = InlineText()
    _walk(node.children, out)
    if style:
        out.spans.insert(0, Span(0, out.length, style))
    return out.lines()


def _walk(nodes: list[SyntaxTreeNode], out: InlineText) -> None:
    for node in nodes:
        start = out.length
        if node.type in ("text", "text_special"):
            out.put(_line_break_tag.sub("\n", _shown(node.content)))
        elif node.type == "code_inline":
            out.put(_shown(node.content))
            out.mark(start, ".markdown--inline-code")
        elif node.type in ("softbreak", "hardbreak"):
            out.put("\n")
        elif node.type == "image":
            source = str(node.attrs.get("src", ""))
            out.put(_shown(node.content) or "image")
            _link(out, start, source)
        elif node.type == "link":
            _walk(node.children, out)
            _link(out, start, str(node.attrs.get("href", "")))
        elif style := _STYLES.get(node.type):
            _walk(node.children, out)
            out.mark(start, style)
        else:
            out.put(_shown(node.content))


def _shown(text: str) -> str:
    """Entities can spell what the source did not hold: controls, tabs and line breaks."""
    return visible(text).replace("\t", "    ").replace(STAND_IN, "")


def _link(out: InlineText, start: int, target: str) -> None:
    """Mark a link, and write its target behind it unless its text says it already."""
    out.mark(start, ".markdown--link")
    if target:
        out.mark(start, Style.from_meta({LINK_META: target}))
    shown = _shown(target)
    text = "".join(out.text)[start:]
    if shown and shown not in (text, f"mailto:{text}", f"{text}/"):
        behind = out.length
        out.put(f" ({shown})")
        out.mark(behind, ".markdown--target")
