"""Text files that the user sends along with a message."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from minicpm5_mac.conversations.records import Attachment
from minicpm5_mac.failure import Failure

LARGEST_BYTES = 512 * 1024
"""About 130,000 tokens of English: as much as MiniCPM5's longest context could hold at all."""


def read_attachment(path: str | os.PathLike[str]) -> Attachment:
    """Read a text file (UTF-8, or UTF-16 with a byte order mark) of at most 512 KiB.

    Raises Failure for what is missing, no regular file, too large, or not text.
    """
    given = os.fspath(path)
    try:
        data = _read(Path(given).expanduser(), given)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"{given} cannot be attached: {reason}.") from error
    except (RuntimeError, ValueError) as error:  # an unknown user, or no name at all
        raise Failure(f"{given} cannot be attached: {error}") from error
    return Attachment(path=given, text=_text(data, given))


def _read(path: Path, given: str) -> bytes:
    # Looked at before it is opened: opening a pipe would wait for a writer.
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise Failure(f"{given} is a folder.", "Attach the files in it one by one.")
    if not stat.S_ISREG(found.st_mode):
        raise Failure(f"{given} is not a regular file.", "Only text files can be attached.")
    with path.open("rb") as file:
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        size = max(found.st_size, len(data)) / 1024
        raise Failure(
            f"{given} is too large to attach ({size:,.0f} KiB; the limit is "
            f"{LARGEST_BYTES // 1024} KiB).",
            "Attach the part that matters.",
        )
    return data


def _text(data: bytes, given: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _not_text(given) from error
    if "\x00" in text:
        raise _not_text(given)
    return text.replace("\r\n", "\n")


def _not_text(given: str) -> Failure:
    return Failure(
        f"{given} is not a text file (UTF-8 or UTF-16).",
        "Convert it to text first: only text can be attached.",
    )
