"""One stretch of a reply: a thinking block's inside, or all that is no thinking block.

Both are text with calls in it. In thinking, a call's own text stays where it is; in the answer
it is taken out, with the `<tool_call>` wrapper it may stand in. Think tags that decide nothing
are dropped in both. What comes out goes to `emit` in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from minicpm5_mac.events import CallStarted
from minicpm5_mac.reply.call import (
    FUNCTION,
    THINK,
    THINK_END,
    CallDraft,
    RawCall,
    read_body,
    read_opener,
)
from minicpm5_mac.reply.scanner import Reading, Scanner, read_tag

WRAPPER = "<tool_call>"
WRAPPER_END = "</tool_call>"

Piece = str | CallStarted | RawCall


class _Place(Enum):
    TEXT = auto()
    WRAPPER = auto()  # after <tool_call>, which is text unless a call follows
    OPENER = auto()  # after <function, which is text unless parameters or an end follow
    CALL = auto()


class Region(Scanner):
    """Reads one region. `emit` gets text, CallStarted (in the answer) and each call at its end."""

    def __init__(self, emit: Callable[[Piece], None], *, thinking: bool) -> None:
        self._emit = emit
        self._thinking = thinking
        self._place = _Place.TEXT
        self._draft = CallDraft()
        self._wrapper = ""
        self._in_wrapper = False
        self._last = ""
        super().__init__()

    @property
    def in_call(self) -> bool:
        """A call, or what may become one, is being written."""
        if self._place is not _Place.TEXT:
            return True
        begun = "".join(self.pending)
        return bool(begun) and self._last != "`" and FUNCTION.startswith(begun)

    def close(self, *, at_end: bool) -> bool:
        """Nothing more comes: the reply ended, or its thinking block did. True: within a call.

        At the end an opener is a call, of which nobody knows how it would have gone on. Before
        `</think>` it is followed by something else than a parameter, and so is text.
        """
        cut = self._place is _Place.CALL or (at_end and self._place is _Place.OPENER)
        if cut:
            if self._place is _Place.OPENER:
                self._leave_wrapper()
            self._done_with_call_text()
            self._emit(self._draft.finish(cut=True))
        else:
            self._keep()
        return cut

    def read(self) -> Reading[None]:
        tags = [FUNCTION, THINK, THINK_END]
        if not self._thinking:
            tags += [WRAPPER, WRAPPER_END]
        while True:
            self._place = _Place.TEXT
            piece = yield "<"
            if piece != "<":
                self._keep()
                continue
            tag = yield from read_tag(self, tags)
            if tag == FUNCTION and self._last != "`":
                yield from self._read_call()
            elif tag == WRAPPER:
                yield from self._read_wrapper()
            elif tag in (THINK, THINK_END):
                self.take()
            elif tag == WRAPPER_END and self._in_wrapper:
                self._in_wrapper = False
                self.take()
            else:
                self._keep()

    def _read_wrapper(self) -> Reading[None]:
        self._place = _Place.WRAPPER
        char = yield ""
        while char.isspace():
            char = yield ""
        if char == "<":
            quoted = self._last == "`" and len(self.pending) == len(WRAPPER) + 1
            tag = yield from read_tag(self, (FUNCTION,))
            if tag == FUNCTION and not quoted:
                self._wrapper = WRAPPER
                yield from self._read_call()
                return
            if tag != FUNCTION:
                self.read_again(len(tag))
        else:
            self.read_again(1)
        self._keep()

    def _read_call(self) -> Reading[None]:
        self._place = _Place.OPENER
        self._draft = CallDraft()
        if not (yield from read_opener(self, self._draft)):
            self._wrapper = ""
            self._keep()
            return
        self._place = _Place.CALL
        self._leave_wrapper()
        if not self._thinking:
            self._emit(CallStarted(self._draft.name))
        yield from read_body(self, self._draft, self._done_with_call_text)
        self._emit(self._draft.finish(cut=False))

    def _leave_wrapper(self) -> None:
        """A call was found in the wrapper: the tag goes, the blanks between them stay."""
        if self._wrapper:
            self._wrapper = ""
            self._in_wrapper = True
            inside = self.take()[len(WRAPPER) :]
            blanks = inside[: len(inside) - len(inside.lstrip())]
            if blanks:
                self._emit(blanks)

    def _done_with_call_text(self) -> None:
        if self._thinking:
            self._keep()
        else:
            self.take()

    def _keep(self) -> None:
        """All that is pending is text."""
        text = self.take()
        if text:
            self._last = text[-1]
            self._emit(text)
