"""Writing a conversation to a file."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from textual.app import App

from minicpm5_mac.app.screens.choice import Choice, Way
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.conversations.export import export_json, export_markdown
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.failure import Failure


async def write(
    app: App[Any], store: ConversationStore, conversation: str, argument: str
) -> Path | None:
    """Export to the file in `argument`, or to one that is asked for; says where it went.

    The file's ending decides: `.json` has all branches, anything else is Markdown.
    """
    try:
        name = argument or await app.push_screen_wait(
            Question(
                "Export",
                "A file that ends in .json holds all branches; any other one is Markdown.",
                value=await asyncio.to_thread(_proposal, store, conversation),
            )
        )
        if not name:
            return None
        path = Path(name).expanduser()
        if await asyncio.to_thread(path.is_dir):
            raise Failure(f"{path} is a folder.", "Name a file in it.")
        if await asyncio.to_thread(path.exists):
            ways = [Way("k", "Keep the file"), Way("r", "Replace it")]
            text = f"{path} exists already."
            if await app.push_screen_wait(Choice("Replace the file?", text, ways)) != "r":
                return None
        await asyncio.to_thread(_write, store, conversation, path)
    except Failure as failure:
        app.notify(str(failure), severity="error", markup=False)
        return None
    app.notify(f"Written to {path}", markup=False)
    return path


def _proposal(store: ConversationStore, conversation: str) -> str:
    title = store.get(conversation).title
    words = re.sub(r"[^\w.-]+", "-", title).strip("-.")[:40]
    return f"{words or 'conversation'}.md"


def _write(store: ConversationStore, conversation: str, path: Path) -> None:
    as_json = path.suffix.lower() == ".json"
    text = (export_json if as_json else export_markdown)(store, conversation)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}.") from error
