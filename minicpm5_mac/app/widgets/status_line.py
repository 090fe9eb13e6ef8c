"""The line at the bottom: model, phase, thinking, context and speed, live."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from minicpm5_mac.app import status_segments
from minicpm5_mac.app.status_segments import SegmentMaker, StatusView

_STYLES = {
    "plain": "$foreground",
    "muted": "$text-muted",
    "accent": "$primary",
    "warning": "$warning",
    "error": "$error",
}


class StatusLine(Widget):
    """Draws a `StatusView`; what it says is decided by its segments, in their order."""

    DEFAULT_CSS = """
    StatusLine {
        height: 1;
        padding: 0 2;
        background: $background;
        color: $text-muted;
    }
    """

    view: reactive[StatusView] = reactive(StatusView())

    def __init__(
        self,
        segments: Sequence[SegmentMaker] = status_segments.SEGMENTS,
        hint: str = "",
        *,
        id: str | None = None,
    ) -> None:
        """hint: what stands at the right where there is room for it."""
        super().__init__(id=id)
        self._segments = tuple(segments)
        self._hint = hint

    def render(self) -> Content:
        made = [segment for make in self._segments if (segment := make(self.view)) is not None]
        width = self.content_size.width
        shown = status_segments.fit(made, width)
        line = (
            Content(status_segments.SEPARATOR)
            .stylize("$text-disabled")
            .join([Content.styled(segment.text, _STYLES[segment.tone]) for segment in shown])
        )
        room = width - line.cell_length
        if self._hint and room >= len(self._hint) + 2:
            gap = " " * (room - len(self._hint))
            line = Content.assemble(line, gap, (self._hint, "$text-disabled"))
        return line
