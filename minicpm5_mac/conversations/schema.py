"""The tables, and how an older file becomes a current one.

`PRAGMA user_version` counts the migrations that a file has had. A migration is never changed
once released: a change of the schema is a new entry at the end.
"""

from __future__ import annotations

import sqlite3

from minicpm5_mac.failure import Failure

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE conversations (
            id TEXT PRIMARY KEY,
            title TEXT NOT NULL,
            created REAL NOT NULL,
            updated REAL NOT NULL,
            head INTEGER,
            settings BLOB NOT NULL DEFAULT x'7b7d'
        ) STRICT
        """,
        "CREATE INDEX conversations_by_time ON conversations (updated)",
        # visited: a clock that ticks whenever a branch is shown; of siblings, the one with the
        # greatest value is where the user was last. writer: the process that streams the row.
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
            parent INTEGER REFERENCES messages (id) DEFERRABLE INITIALLY DEFERRED,
            role TEXT NOT NULL,
            created REAL NOT NULL,
            visited INTEGER NOT NULL,
            state TEXT NOT NULL,
            writer TEXT,
            finish TEXT,
            cause TEXT NOT NULL DEFAULT '',
            usage BLOB,
            tool_calls BLOB,
            attachments BLOB,
            content TEXT NOT NULL,
            reasoning TEXT NOT NULL DEFAULT '',
            ids BLOB
        ) STRICT
        """,
        "CREATE INDEX messages_by_parent ON messages (conversation, parent)",
        "CREATE INDEX messages_by_parent_alone ON messages (parent)",
        "CREATE INDEX messages_by_visit ON messages (visited)",
        "CREATE INDEX messages_streaming ON messages (writer) WHERE state = 'streaming'",
        # key: a conversation's id, or '' for the draft of a new one.
        """
        CREATE TABLE drafts (
            key TEXT PRIMARY KEY,
            text TEXT NOT NULL,
            updated REAL NOT NULL
        ) STRICT
        """,
    ),
)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date, in one transaction. Raises Failure for a newer file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise Failure(
                "The stored conversations were written by a newer minicpm5-mac "
                f"(format {version}; this one knows {len(MIGRATIONS)}).",
                "Update minicpm5-mac to open them. Nothing was changed.",
            )
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        if version < len(MIGRATIONS):
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
