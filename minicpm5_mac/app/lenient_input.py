"""Bytes from the terminal that are no UTF-8: a character lost, and not the app.

A paste from a file in Latin-1, a key of an old terminal, or a page that is not ours send them.
Textual 8.2 decodes strictly, in the thread that reads, whose end is the app's.
"""

from __future__ import annotations

import codecs
import functools
from typing import Any, cast

from textual.drivers import linux_driver


def read_any_bytes() -> None:
    """Let Textual's driver read U+FFFD where there is no character. Idempotent."""
    driver = cast("Any", linux_driver)
    driver.getincrementaldecoder = _lenient_decoder


def _lenient_decoder(encoding: str) -> functools.partial[codecs.IncrementalDecoder]:
    """As `codecs.getincrementaldecoder`, of decoders that never raise."""
    return functools.partial(codecs.getincrementaldecoder(encoding), errors="replace")
