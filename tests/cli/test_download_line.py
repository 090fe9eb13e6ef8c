"""Download progress: one line rewritten in a terminal, few lines in a log, and always the last."""

from __future__ import annotations

import io

import pytest

from minicpm5_mac.cli.download_line import DownloadLine
from minicpm5_mac.events import DownloadProgress

STEPS = [DownloadProgress("model", done, 90_000_000, 3e6, None) for done in (0, 45_000_000)]
LAST = DownloadProgress("model", 90_000_000, 90_000_000, 3e6, 0.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("steps", [STEPS, []])
def test_a_log_has_the_first_and_the_last_line_of_a_fast_download(steps):
    log = io.StringIO()
    line = DownloadLine(log)
    for event in [*steps, LAST]:
        line.show(event)
    line.finish()
    line.finish()  # leaving twice adds nothing
    lines = log.getvalue().splitlines()
    assert len(lines) == (2 if steps else 1)
    assert "100 %" in lines[-1]
    assert "90 MB" in lines[-1]


def test_a_terminal_has_one_line_that_a_shorter_one_covers():
    terminal = Terminal()
    line = DownloadLine(terminal)
    line.show(DownloadProgress("model", 45_000_000, 90_000_000, 3e6, 1000.0))
    line.show(LAST)
    line.finish()
    first, second = terminal.getvalue().removesuffix("\n").split("\r")[1:]
    assert len(second) == len(first)
    assert terminal.getvalue().count("\n") == 1


def test_no_download_no_line():
    for stream in (io.StringIO(), Terminal()):
        DownloadLine(stream).finish()
        assert stream.getvalue() == ""
