"""The messages of conversations: a tree, of which the path to the head is shown.

Nothing here is ever overwritten by an edit: another version of a message is another child of
the same parent.
"""

from __future__ import annotations

import sqlite3
import time

import msgspec

from minicpm5_mac.conversations import id_blob
from minicpm5_mac.conversations.database import Database
from minicpm5_mac.conversations.records import CRASHED, Attachment, StoredMessage
from minicpm5_mac.conversations.writer_lock import WriterLock, is_alive
from minicpm5_mac.events import ReplyEnd, Usage
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import Role, ToolCall

_COLUMNS = (
    "messages.id, messages.parent, role, created, state, finish, cause, usage, "
    "tool_calls, attachments, content, reasoning, ids"
)
_PATH = """
    WITH RECURSIVE path (id, parent, depth) AS (
        SELECT id, parent, 0 FROM messages WHERE id = ? AND conversation = ?
        UNION ALL
        SELECT messages.id, messages.parent, depth + 1
        FROM messages JOIN path ON messages.id = path.parent
    )
"""
_tool_calls = msgspec.json.Decoder(tuple[ToolCall, ...])
_attachments = msgspec.json.Decoder(tuple[Attachment, ...])
_usage = msgspec.json.Decoder(Usage)


class MessageTree:
    """All messages of one store. Any thread may call it; see ConversationStore for errors."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._locks = database.path.parent / "writers"
        self._writer: WriterLock | None = None

    def close(self) -> None:
        """Give up the claim on replies that this store is streaming."""
        if self._writer is not None:
            self._writer.release()
            self._writer = None

    # Reading ------------------------------------------------------------------------------------

    def path(self, conversation: str, head: int | None) -> tuple[StoredMessage, ...]:
        """The messages from a first one to `head`. Raises Failure for an unknown head."""
        if head is None:
            return ()
        rows = self._database.rows(
            f"{_PATH} SELECT {_COLUMNS} FROM path JOIN messages ON messages.id = path.id "
            "ORDER BY depth DESC",
            (head, conversation),
        )
        if not rows:
            raise _unknown(head)
        siblings = self._children(
            conversation,
            f"(parent IS NULL OR parent IN ({_PATH} SELECT parent FROM path))",
            (head, conversation),
        )
        return tuple(_message(row, siblings) for row in rows)

    def all(self, conversation: str) -> tuple[StoredMessage, ...]:
        """Every message of every branch, oldest first."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM messages WHERE conversation = ? ORDER BY id", (conversation,)
        )
        siblings = self._children(conversation, "TRUE", ())
        return tuple(_message(row, siblings) for row in rows)

    def texts(self, conversation: str) -> tuple[tuple[int, Role, str], ...]:
        """(id, role, text) of every message of every branch, newest first."""
        rows = self._database.rows(
            "SELECT id, role, content FROM messages WHERE conversation = ? ORDER BY id DESC",
            (conversation,),
        )
        return tuple((row["id"], row["role"], row["content"]) for row in rows)

    def siblings(self, conversation: str, message: int) -> tuple[int, ...]:
        """The branches at a message: all children of its parent, itself included, oldest first."""
        rows = self._database.rows(
            "SELECT id FROM messages WHERE conversation = ?1 AND parent IS "
            "(SELECT parent FROM messages WHERE id = ?2 AND conversation = ?1) ORDER BY id",
            (conversation, message),
        )
        found = tuple(row["id"] for row in rows)
        if message not in found:
            raise _unknown(message)
        return found

    def leaf(self, conversation: str, message: int) -> int:
        """The end of the branch below a message where the user was last; itself if it is one."""
        self.siblings(conversation, message)
        while True:
            child = self._database.row(
                "SELECT id FROM messages WHERE parent = ? ORDER BY visited DESC, id DESC LIMIT 1",
                (message,),
            )
            if child is None:
                return message
            message = child["id"]

    def _children(
        self, conversation: str, where: str, parameters: tuple
    ) -> dict[int | None, tuple[int, ...]]:
        rows = self._database.rows(
            f"SELECT parent, id FROM messages WHERE {where} AND conversation = ? ORDER BY id",
            (*parameters, conversation),
        )
        children: dict[int | None, tuple[int, ...]] = {}
        for row in rows:
            children[row["parent"]] = (*children.get(row["parent"], ()), row["id"])
        return children

    # Writing ------------------------------------------------------------------------------------

    def add(
        self,
        conversation: str,
        parent: int | None,
        role: Role,
        content: str,
        attachments: tuple[Attachment, ...] = (),
        *,
        answers: ToolCall | None = None,
        cause: str = "",
    ) -> int:
        """Store a whole message below `parent`; it becomes the head. Returns its id.

        answers, cause: of a tool's result, the call it is for, and its outcome (ToolFinished).
        """
        return self._insert(
            conversation,
            parent,
            role=role,
            content=content,
            state="done",
            cause=cause,
            tool_calls=_encoded_calls((answers,) if answers else ()),
            attachments=msgspec.json.encode(attachments) if attachments else None,
        )

    def begin_reply(self, conversation: str, parent: int | None) -> int:
        """Store an empty reply that this process is about to stream; it becomes the head."""
        with self._database.transaction():
            return self._insert(
                conversation,
                parent,
                role="assistant",
                content="",
                state="streaming",
                writer=self._claim(),
            )

    def reopen_reply(self, message: int) -> None:
        """A reply that ended goes on: this process streams it again."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE messages SET state = 'streaming', writer = ? WHERE id = ?",
                (self._claim(), message),
            )

    def save_reply(
        self, message: int, content: str, reasoning: str, tool_calls: tuple[ToolCall, ...] = ()
    ) -> None:
        """Keep what has been streamed so far: the whole text, not only what is new."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE messages SET content = ?, reasoning = ?, tool_calls = ? WHERE id = ?",
                (content, reasoning, _encoded_calls(tool_calls), message),
            )

    def finish_reply(
        self,
        message: int,
        content: str,
        reasoning: str,
        tool_calls: tuple[ToolCall, ...],
        end: ReplyEnd,
    ) -> None:
        """Keep the whole reply and how it ended. Raises Failure where it has been deleted."""
        with self._database.transaction() as connection:
            done = connection.execute(
                "UPDATE messages SET content = ?, reasoning = ?, tool_calls = ?, "
                "state = 'done', writer = NULL, finish = ?, cause = ?, usage = ?, ids = ? "
                "WHERE id = ?",
                (
                    content,
                    reasoning,
                    _encoded_calls(tool_calls),
                    end.finish,
                    end.cause,
                    msgspec.json.encode(end.usage),
                    id_blob.pack(end.ids) if end.ids else None,
                    message,
                ),
            )
            if done.rowcount == 0:
                raise _unknown(message)

    def show(self, conversation: str, head: int) -> None:
        """Make `head` the conversation's last message. Nothing is lost by it."""
        with self._database.transaction() as connection:
            clock = _next_visit(connection)
            done = connection.execute(
                f"UPDATE messages SET visited = ? WHERE id IN ({_PATH} SELECT id FROM path)",
                (clock, head, conversation),
            )
            if done.rowcount == 0:
                raise _unknown(head)
            connection.execute(
                "UPDATE conversations SET head = ?, updated = ? WHERE id = ?",
                (head, time.time(), conversation),
            )

    def recover(self) -> int:
        """Replies that a dead process was streaming become cancelled ones; returns how many."""
        rows = self._database.rows("SELECT DISTINCT writer FROM messages WHERE state = 'streaming'")
        dead = [row["writer"] for row in rows if not is_alive(self._locks, row["writer"])]
        if not dead:
            return 0
        with self._database.transaction() as connection:
            marks = ", ".join("?" * len(dead))
            done = connection.execute(
                "UPDATE messages SET state = 'done', writer = NULL, finish = 'cancelled', "
                f"cause = ?, ids = NULL WHERE state = 'streaming' AND writer IN ({marks})",
                (CRASHED, *dead),
            )
            return done.rowcount

    def _claim(self) -> str:
        if self._writer is None:
            self._writer = WriterLock(self._locks)
        return self._writer.name

    def _insert(self, conversation: str, parent: int | None, **columns: object) -> int:
        now = time.time()
        with self._database.transaction() as connection:
            if parent is not None:
                known = connection.execute(
                    "SELECT 1 FROM messages WHERE id = ? AND conversation = ?",
                    (parent, conversation),
                ).fetchone()
                if known is None:
                    raise _unknown(parent)
            moved = connection.execute(
                "UPDATE conversations SET updated = ? WHERE id = ?", (now, conversation)
            )
            if moved.rowcount == 0:
                raise Failure(f"The conversation {conversation} has been deleted.")
            values = {
                "conversation": conversation,
                "parent": parent,
                "created": now,
                "visited": _next_visit(connection),
                **columns,
            }
            marks = ", ".join("?" * len(values))
            made = connection.execute(
                f"INSERT INTO messages ({', '.join(values)}) VALUES ({marks})",
                tuple(values.values()),
            )
            message = made.lastrowid
            assert message is not None
            connection.execute(
                "UPDATE conversations SET head = ? WHERE id = ?", (message, conversation)
            )
        return message


def _next_visit(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT coalesce(max(visited), 0) + 1 FROM messages").fetchone()
    return row[0]


def _encoded_calls(tool_calls: tuple[ToolCall, ...]) -> bytes | None:
    return msgspec.json.encode(tool_calls) if tool_calls else None


def _message(row: sqlite3.Row, siblings: dict[int | None, tuple[int, ...]]) -> StoredMessage:
    return StoredMessage(
        id=row["id"],
        parent=row["parent"],
        role=row["role"],
        content=row["content"],
        reasoning=row["reasoning"],
        tool_calls=_tool_calls.decode(row["tool_calls"]) if row["tool_calls"] else (),
        attachments=_attachments.decode(row["attachments"]) if row["attachments"] else (),
        siblings=siblings[row["parent"]],
        state=row["state"],
        finish=row["finish"],
        cause=row["cause"],
        usage=_usage.decode(row["usage"]) if row["usage"] else None,
        ids=id_blob.unpack(row["ids"]),
        created=row["created"],
    )


def _unknown(message: int) -> Failure:
    return Failure(f"There is no message {message} in this conversation.")
