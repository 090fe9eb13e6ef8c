"""The widget that shows Markdown while it is being written."""

from __future__ import annotations

import time

from textual.geometry import Region

from minicpm5_mac.app.markdown.document import MarkdownDocument
from minicpm5_mac.app.markdown.lines import Row
from minicpm5_mac.app.markdown.rows_view import RowsView

# Rendering at 10 Hz reads as continuous and costs an eighth of rendering at every token.
_INTERVAL = 0.1
# A text that cannot be cut (one table row without end) costs more at every rendering; it is
# rendered so rarely that it takes no more than this share of a core.
_SHARE = 1 / 5
# Seconds of one turn of the event loop that colouring code may take.
_SLICE = 0.008


class MarkdownStream(RowsView):
    """Markdown that is appended to. Cheap: text is kept and shown at most ten times a second.

    Use it from the app's thread. It may be filled before it is mounted.
    """

    def __init__(
        self, text: str = "", *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._document = MarkdownDocument()
        self._pending: list[str] = []
        self._shown_at = 0.0
        self._armed = False
        self._cost = 0.0  # CPU seconds of the last rendering.
        if text:
            self._document.append(text)
            self._document.finish()

    @property
    def text(self) -> str:
        """The whole source, as it was appended."""
        return self._document.text + "".join(self._pending)

    def append(self, text: str) -> None:
        """Add text at the end; it is seen within a tenth of a second."""
        if text:
            self._pending.append(text)
            self._arm()

    def finish(self) -> None:
        """Nothing follows: show all there is now."""
        self._take_pending()
        self._document.finish()
        self._show()

    def flush(self) -> None:
        """Show at once what was appended."""
        self._take_pending()
        self._show()

    def code_blocks(self) -> list[tuple[str, str]]:
        """(language, code) of each code block, in order; the language may be ""."""
        self._take_pending()
        return self._document.code_blocks()

    def rows_at(self, width: int) -> list[Row]:
        return self._document.rows(width)

    def on_mount(self) -> None:
        self._arm()

    def _arm(self) -> None:
        if self._armed or not self.is_running:
            return
        if not (self._pending or self._document.unfinished):
            return
        self._armed = True
        interval = max(_INTERVAL, self._cost / _SHARE)
        wait = max(0.001, self._shown_at + interval - time.monotonic())
        self.set_timer(wait, self._tick)

    def _tick(self) -> None:
        self._armed = False
        if self._pending:
            began = time.thread_time()
            self.flush()
            self._cost = time.thread_time() - began
        if self._document.work(time.monotonic() + _SLICE):
            self.refresh()
        self._shown_at = time.monotonic()
        self._arm()

    def _take_pending(self) -> None:
        if self._pending:
            text, self._pending = "".join(self._pending), []
            self._document.append(text)

    def _show(self) -> None:
        if not self.is_running:
            return
        width = self.content_size.width
        height = len(self._document.rows(width)) if width else 0
        if width and height == self.content_size.height:
            # Without a new row, only the open ones are drawn again.
            first = self._document.finished_rows
            self.refresh(Region(0, first, width, height - first))
        else:
            self.refresh(layout=True)
        self._arm()
