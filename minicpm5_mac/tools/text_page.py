"""A page of a text file: whole lines, bounded in bytes, with exact counts of the rest."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than all the rest of a call
    from typing import BinaryIO

PAGE_LINES = 400
PAGE_BYTES = 16 * 1024
LINE_BYTES = 4096
SAMPLE_BYTES = 8192
MOST_UNDECODABLE = 0.1


def is_binary(sample: bytes) -> bool:
    """Whether the beginning of a file is no UTF-8 text."""
    if b"\0" in sample:
        return True
    text = sample.decode(errors="replace")
    return text.count("\ufffd") > MOST_UNDECODABLE * max(1, len(text))


def read_page(
    file: BinaryIO, start: int = 1, lines: int = PAGE_LINES, most_bytes: int = PAGE_BYTES
) -> str:
    """Lines `start` (from 1) and following as text; a note in brackets where there are more.

    A page has at least one line. One beyond LINE_BYTES, or a whole page, is cut,
    with a note. CR LF is shown as a line feed.
    """
    sample = file.read(SAMPLE_BYTES)
    if is_binary(sample):
        size = file.seek(0, 2)
        return f"[binary, {size:,} bytes, not shown]"
    file.seek(0)
    shown: list[str] = []
    size = 0
    full = False
    number = 0
    for number, line in enumerate(file, 1):
        if number < start or full:
            continue
        text = _line(line, number, min(LINE_BYTES, most_bytes))
        size += len(text.encode())
        if len(shown) == lines or (shown and size > most_bytes):
            full = True
            continue
        shown.append(text)
    if number == 0:
        return "[empty file]"
    if not shown:
        return f"[there is no line {start:,}: the file has {number:,}]"
    end = start + len(shown) - 1
    text = "".join(shown)
    if start == 1 and end == number:
        return text
    note = f"[lines {start:,}-{end:,} of {number:,}"
    note += f"; the next page: start={end + 1}]" if end < number else "; the end]"
    return text + ("" if text.endswith("\n") else "\n") + note


def _line(line: bytes, number: int, most_bytes: int) -> str:
    if len(line) <= most_bytes:
        return line.replace(b"\r\n", b"\n").decode(errors="replace")
    cut = line[:most_bytes].decode(errors="ignore")
    return f"{cut} [line {number:,} has {len(line):,} bytes; {len(cut.encode()):,} shown]\n"
