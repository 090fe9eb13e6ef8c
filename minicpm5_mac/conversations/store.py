"""Conversations on disk: list, find, rename, delete, drafts, and the way to their messages."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from types import TracebackType

from minicpm5_mac import locations
from minicpm5_mac.conversations.database import Database
from minicpm5_mac.conversations.message_tree import MessageTree
from minicpm5_mac.conversations.records import Conversation
from minicpm5_mac.conversations.title import UNTITLED, clean_title
from minicpm5_mac.failure import Failure

FILE_NAME = "conversations.db"

_SUMMARY = """
    SELECT id, title, created, updated, head, settings,
        (SELECT count(*) FROM messages WHERE conversation = conversations.id) AS messages
    FROM conversations
"""


class ConversationStore:
    """All conversations of one user. Any thread may call it; several processes may have it open.

    messages: the branching messages of the conversations.
    set_aside: the path that a damaged file was moved to when the store was opened, else None.

    Every method raises Failure when the file cannot be read or written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Open, or create, the store in a folder (default: `locations.data_dir()`).

        Replies whose process died while they were streaming become cancelled ones here, with
        their text. Raises Failure for a file of a newer version.
        """
        self.path = (folder or locations.data_dir()) / FILE_NAME
        self._database = Database(self.path)
        self.messages = MessageTree(self._database)
        self.messages.recover()

    @property
    def set_aside(self) -> Path | None:
        return self._database.set_aside

    def close(self) -> None:
        """Close the file. May be called twice."""
        self.messages.close()
        self._database.close()

    def __enter__(self) -> ConversationStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Conversations ------------------------------------------------------------------------------

    def create(self, title: str = "", settings: bytes = b"{}") -> Conversation:
        """A new, empty conversation. settings: JSON that comes back with it."""
        now = time.time()
        made = Conversation(
            id=secrets.token_hex(10),
            title=clean_title(title) or UNTITLED,
            created=now,
            updated=now,
            messages=0,
            head=None,
            settings=settings,
        )
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO conversations (id, title, created, updated, settings) "
                "VALUES (?, ?, ?, ?, ?)",
                (made.id, made.title, now, now, settings),
            )
        return made

    def list(self, limit: int | None = None, offset: int = 0) -> tuple[Conversation, ...]:
        """Conversations, the one used last first. Reads no message."""
        rows = self._database.rows(
            f"{_SUMMARY} ORDER BY updated DESC, rowid DESC LIMIT ? OFFSET ?",
            (-1 if limit is None else limit, offset),
        )
        return tuple(Conversation(**row) for row in rows)

    def latest(self) -> Conversation | None:
        """The conversation used last."""
        return next(iter(self.list(limit=1)), None)

    def get(self, conversation: str) -> Conversation:
        """A conversation by its whole id. Raises Failure where there is none."""
        row = self._database.row(f"{_SUMMARY} WHERE id = ?", (conversation,))
        if row is None:
            raise _unknown(conversation)
        return Conversation(**row)

    def find(self, prefix: str) -> Conversation:
        """A conversation by the beginning of its id. Raises Failure unless exactly one has it."""
        wanted = prefix.strip().lower()
        rows = self._database.rows(
            f"{_SUMMARY} WHERE substr(id, 1, ?) = ? ORDER BY updated DESC LIMIT 6",
            (len(wanted), wanted),
        )
        if not wanted or not rows:
            raise _unknown(prefix)
        if len(rows) > 1:
            names = "\n".join(f"  {row['id']}  {row['title']}" for row in rows[:5])
            raise Failure(
                f"Several conversations begin with {prefix!r}:\n{names}",
                "Give more of the id.",
            )
        return Conversation(**rows[0])

    def short_ids(self, at_least: int = 8) -> dict[str, str]:
        """For every conversation's id, its shortest beginning that no other one has."""
        ids = [row["id"] for row in self._database.rows("SELECT id FROM conversations ORDER BY id")]
        shortest = {}
        for index, name in enumerate(ids):
            neighbours = ids[max(0, index - 1) : index] + ids[index + 1 : index + 2]
            shared = max((_shared_prefix(name, other) for other in neighbours), default=0)
            shortest[name] = name[: max(at_least, shared + 1)]
        return shortest

    def rename(self, conversation: str, title: str) -> str:
        """Give it another title; returns the title as stored. Raises Failure for an empty one."""
        cleaned = clean_title(title)
        if not cleaned:
            raise Failure("A conversation's title cannot be empty.")
        self._change(conversation, "title", cleaned)
        return cleaned

    def save_settings(self, conversation: str, settings: bytes) -> None:
        """Replace the JSON that the session keeps with it."""
        self._change(conversation, "settings", settings)

    def delete(self, conversation: str) -> None:
        """Remove it with all its messages and its draft, for good."""
        with self._database.transaction() as connection:
            done = connection.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
            if done.rowcount == 0:
                raise _unknown(conversation)
            connection.execute("DELETE FROM drafts WHERE key = ?", (conversation,))

    def _change(self, conversation: str, column: str, value: str | bytes) -> None:
        with self._database.transaction() as connection:
            done = connection.execute(
                f"UPDATE conversations SET {column} = ? WHERE id = ?", (value, conversation)
            )
            if done.rowcount == 0:
                raise _unknown(conversation)

    # Drafts -------------------------------------------------------------------------------------

    def draft(self, conversation: str | None) -> str:
        """The unsent text of a conversation, or of the new one (None); empty if there is none."""
        row = self._database.row("SELECT text FROM drafts WHERE key = ?", (conversation or "",))
        return row["text"] if row else ""

    def save_draft(self, conversation: str | None, text: str) -> None:
        """Keep unsent text; an empty one removes the draft."""
        key = conversation or ""
        with self._database.transaction() as connection:
            if text:
                connection.execute(
                    "INSERT INTO drafts (key, text, updated) VALUES (?, ?, ?) ON CONFLICT (key) "
                    "DO UPDATE SET text = excluded.text, updated = excluded.updated",
                    (key, text, time.time()),
                )
            else:
                connection.execute("DELETE FROM drafts WHERE key = ?", (key,))


def _shared_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _unknown(conversation: str) -> Failure:
    return Failure(
        f"There is no conversation {conversation!r}.",
        "`minicpm5-mac conversations list` shows the ids.",
    )
