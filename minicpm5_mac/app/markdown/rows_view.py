"""A widget that shows rows: it draws those in sight, whatever their number."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.cache import LRUCache
from textual.color import TRANSPARENT
from textual.content import Content, Span
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from minicpm5_mac.app.markdown.inline import LINK_META
from minicpm5_mac.app.markdown.lines import Row

# Schemes that a click opens; others that a model may write (file:, javascript:) are only shown.
_OPENED = ("http://", "https://", "mailto:")

# A strip holds caches of its own, about 10 kB; a screen is seldom taller than this.
_KEPT_STRIPS = 150
_COMPONENTS = (
    *("h1", "h2", "h3", "strong", "em", "strike", "link", "target", "inline-code"),
    *("code", "label", "border", "bullet", "quote"),
)


class RowsView(Widget):
    """Any number of rows of text in one widget; the mouse selects, a click opens a link.

    Space around it is margin: it draws no border and no padding.
    Subclasses say which rows by `rows_at`. A row that changes is another Row object; only rows in
    sight are ever turned into cells, and they are kept until the look changes.
    """

    DEFAULT_CSS = Path(__file__).with_name("markdown.tcss").read_text(encoding="utf-8")
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"markdown--{name}" for name in _COMPONENTS}

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._named_styles: dict[str, Style] = {}
        # Cells of the rows in sight and some around, in the look they were drawn in.
        self._drawn: LRUCache[tuple[Row, bool, int], Strip] = LRUCache(_KEPT_STRIPS)
        self._drawn_in: tuple[Style, dict[str, Style]] | None = None

    def rows_at(self, width: int) -> list[Row]:
        """All rows at a width in cells."""
        raise NotImplementedError

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows_at(width)) if width else 0

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._named_styles = {}

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows in sight. Rows keep their cells, so what did not change costs next to nothing.

        It stands in for Textual's drawing of borders, padding and opacity, which this widget has
        none of.
        """
        strips = [self.render_line(y) for y in crop.line_range]
        background = self.background_colors[1]
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        rows = self.rows_at(width) if width else []
        if y >= len(rows):
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        span = selection.get_span(y) if selection else None
        return self._strip(rows[y], span, width).apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text: wrapped lines joined again, code without its frame."""
        parts: list[str] = []
        for y, row in enumerate(self.rows_at(self.content_size.width)):
            span = selection.get_span(y)
            if span is None:
                continue
            start, end = span
            wrapped = row.joint != "\n"
            if wrapped or row.fill:
                start = max(start, row.body_start)
            text = row.text[start:] if end == -1 else row.text[start:end]
            if row.code is None:
                text = text.rstrip()
            parts += [row.joint, text] if parts else [text]
        return "".join(parts), "\n"

    def on_click(self, event: events.Click) -> None:
        target = event.style.meta.get(LINK_META)
        if isinstance(target, str) and target.startswith(_OPENED):
            event.stop()
            self.app.open_url(target)

    def _strip(self, row: Row, span: tuple[int, int] | None, width: int) -> Strip:
        coloured = row.code is not None and row.code.spans(row.line) is not None
        key = (row, coloured, width)
        if span is None:
            if self._drawn_in != (look := (self.visual_style, self._named_styles)):
                self._drawn.clear()
                self._drawn_in = look
            if (strip := self._drawn.get(key)) is not None:
                return strip
        content = row.content()
        if span is not None:
            start, end = span
            end = len(content.plain) if end == -1 else min(end, len(content.plain))
            if start < end:
                style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
                content = content.add_spans([Span(start, end, style)])
        strip = self._draw(content, row.fill, width)
        if span is None:
            self._drawn[key] = strip
        return strip

    def _draw(self, content: Content, fill: str, width: int) -> Strip:
        base = self.visual_style
        segments = [
            Segment(text, (base + style).rich_style)
            for text, style in content.render(base, end="", parse_style=self._style)
            if text
        ]
        rest = base + self._style(fill) if fill else base
        return Strip(segments).adjust_cell_length(width, rest.rich_style)

    def _style(self, name: str | Style) -> Style:
        if isinstance(name, Style):
            return name
        style = self._named_styles.get(name)
        if style is None:
            known = name.removeprefix(".") in self.COMPONENT_CLASSES
            style = self._component_style(name[1:]) if known else self._get_style(name)
            self._named_styles[name] = style
        return style

    def _component_style(self, name: str) -> Style:
        """A component's own rules, to be laid over the widget's (Textual's own drops colours)."""
        styles = self.get_component_styles(name)
        text = styles.text_style
        background = styles.background if styles.has_rule("background") else None
        colour = styles.color if styles.has_rule("color") else None
        if colour is not None and styles.auto_color:
            below = self.background_colors[1] + (background or TRANSPARENT)
            colour = below.get_contrast_text(colour.a)
        return Style(
            background,
            colour,
            bold=text.bold,
            dim=text.dim,
            italic=text.italic,
            underline=text.underline,
            strike=text.strike,
        )
