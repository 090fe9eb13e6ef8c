"""Reading the files that a message names."""

from __future__ import annotations

from pathlib import Path

import msgspec

from minicpm5_mac.agent.attachments import read_attachment
from minicpm5_mac.app.attachments import mentioned_files
from minicpm5_mac.conversations.records import Attachment


def attached(text: str, folder: Path) -> tuple[Attachment, ...]:
    """The files named in `text`, read, under the paths it gives. Blocks; raises Failure."""
    return tuple(
        msgspec.structs.replace(read_attachment(folder / Path(path).expanduser()), path=path)
        for path in mentioned_files(text, folder)
    )
