"""What waits on a terminal before a question is asked: it cannot be an answer to it."""

from __future__ import annotations

import contextlib
import termios
from typing import TextIO


def drop_typed_ahead(source: TextIO | None) -> None:
    """Forget what was typed or pasted before now, where `source` is a terminal.

    Whoever typed it had not seen the question. A pipe is left alone: what is in it was written
    to be read in this order.
    """
    if source is None or not source.isatty():
        return
    with contextlib.suppress(termios.error):  # a terminal that is gone: the read will say so
        termios.tcflush(source.fileno(), termios.TCIFLUSH)
