"""The store: conversations, drafts, file modes, versions, damage."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from pathlib import Path

import pytest

from minicpm5_mac import locations
from minicpm5_mac.conversations.schema import MIGRATIONS
from minicpm5_mac.conversations.store import FILE_NAME, ConversationStore
from minicpm5_mac.failure import Failure


def test_it_lives_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(locations.HOME_VARIABLE, str(tmp_path))
    with ConversationStore() as store:
        assert store.path == locations.data_dir() / FILE_NAME


def test_only_the_owner_can_read_it(tmp_path: Path):
    folder = tmp_path / "a" / "data"
    before = os.umask(0)
    try:
        with ConversationStore(folder) as store:
            made = store.create()
            store.messages.begin_reply(made.id, store.messages.add(made.id, None, "user", "x"))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} | {
                "data": stat.S_IMODE(folder.stat().st_mode)
            }
    finally:
        os.umask(before)
    folders = {"data", "writers"}
    assert {name: mode for name, mode in modes.items() if name in folders} == dict.fromkeys(
        folders, 0o700
    )
    assert {mode for name, mode in modes.items() if name not in folders} == {0o600}
    assert {FILE_NAME, f"{FILE_NAME}-wal"} <= set(modes)


def test_an_open_folder_of_an_earlier_version_is_closed_to_others(tmp_path: Path):
    tmp_path.chmod(0o755)
    ConversationStore(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_what_was_stored_is_there_when_it_is_opened_again(tmp_path: Path):
    with ConversationStore(tmp_path) as store:
        made = store.create("A title", b'{"model": "demo"}')
        head = store.messages.add(made.id, None, "user", "hello")
    with ConversationStore(tmp_path) as store:
        (found,) = store.list()
        assert (found.id, found.title, found.head) == (made.id, "A title", head)
        assert found.settings == b'{"model": "demo"}'
        assert [m.content for m in store.messages.path(found.id, head)] == ["hello"]


def test_list_has_the_one_used_last_first(store: ConversationStore):
    ids = [store.create(f"{number}").id for number in range(5)]
    store.messages.add(ids[1], None, "user", "again")
    newest_first = [ids[1], ids[4], ids[3], ids[2], ids[0]]
    assert [c.id for c in store.list()] == newest_first
    assert [c.id for c in store.list(limit=2, offset=1)] == newest_first[1:3]
    latest = store.latest()
    assert latest is not None
    assert latest.id == ids[1]
    assert latest.messages == 1


def test_renaming_does_not_move_it_to_the_front(store: ConversationStore):
    first, second = store.create("first"), store.create("second")
    store.rename(first.id, "renamed")
    assert [c.id for c in store.list()] == [second.id, first.id]


def test_list_reads_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments, **options) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    with ConversationStore(tmp_path) as store:
        made = store.create("x")
        store.messages.add(made.id, None, "user", "body " * 1000)
        statements.clear()
        store.list()
        plan = [step for statement in statements for step in _explained(store.path, statement)]
    # An index holds ids only: whoever counts in one that covers the query sees no text.
    assert any("messages" in step for step in plan)
    assert not [step for step in plan if "messages" in step and "COVERING INDEX" not in step]


def _explained(path: Path, statement: str) -> list[str]:
    connection = sqlite3.connect(path)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    connection.close()
    return [row[3] for row in rows]


def test_find_takes_any_beginning_that_only_one_has(store: ConversationStore):
    ids = [store.create(f"number {number}").id for number in range(40)]
    for name, short in store.short_ids(at_least=1).items():
        assert name.startswith(short)
        assert store.find(short).id == name
        assert store.find(short.upper()).id == name
        shorter = [other for other in ids if other.startswith(short[:-1])]
        assert len(shorter) > 1
        with pytest.raises(Failure):
            store.find(short[:-1])


def test_an_ambiguous_id_names_the_candidates(store: ConversationStore):
    for number in range(40):  # more than there are hexadecimal digits: two must share the first
        store.create(f"number {number}")
    shared = next(
        digit
        for digit in "0123456789abcdef"
        if sum(c.id.startswith(digit) for c in store.list()) > 1
    )
    with pytest.raises(Failure) as raised:
        store.find(shared)
    assert re.search(rf"\n  {shared}[0-9a-f]{{19}}  number \d+", str(raised.value))


@pytest.mark.parametrize("prefix", ["", " ", "zz", "%", "_", "'", "0" * 21])
def test_an_unknown_id_is_a_failure(store: ConversationStore, prefix: str):
    store.create("x")
    with pytest.raises(Failure, match="no conversation"):
        store.find(prefix)
    with pytest.raises(Failure, match="no conversation"):
        store.get(prefix)


def test_a_title_has_no_control_characters(store: ConversationStore):
    made = store.create("evil \x1b[31m\u202etitle\u2066\n two")
    assert made.title == "evil [31mtitle two"
    assert store.rename(made.id, "\u200bplain\x07 ") == "plain"
    with pytest.raises(Failure, match="cannot be empty"):
        store.rename(made.id, "\u202e \n")


def test_deleting_takes_messages_and_draft_along(store: ConversationStore):
    gone, kept = store.create("gone"), store.create("kept")
    first = store.messages.add(gone.id, None, "user", "0")
    chain = [(first + n, first + n - 1) for n in range(1, 2500)]  # deeper than triggers may nest
    with sqlite3.connect(store.path) as connection:
        connection.executemany(
            "INSERT INTO messages (id, parent, conversation, role, created, visited, state, "
            f"content) VALUES (?, ?, '{gone.id}', 'user', 0, 0, 'done', '')",
            chain,
        )
    connection.close()
    assert len(store.messages.path(gone.id, chain[-1][0])) == 2500
    store.messages.add(kept.id, None, "user", "still here")
    store.save_draft(gone.id, "a draft")
    store.save_draft(kept.id, "another")
    store.delete(gone.id)
    assert [c.id for c in store.list()] == [kept.id]
    connection = sqlite3.connect(store.path)
    assert connection.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    connection.close()
    assert store.draft(gone.id) == ""
    assert store.draft(kept.id) == "another"
    for call in (store.delete, store.get, lambda c: store.rename(c, "x")):
        with pytest.raises(Failure, match="no conversation"):
            call(gone.id)
    with pytest.raises(Failure, match="deleted"):
        store.messages.add(gone.id, None, "user", "too late")


def test_drafts_are_kept_for_each_conversation_and_for_a_new_one(tmp_path: Path):
    with ConversationStore(tmp_path) as store:
        made = store.create("x")
        store.save_draft(made.id, "for it")
        store.save_draft(None, "for a new one\n  ")
        store.save_draft(made.id, "for it, longer")
    with ConversationStore(tmp_path) as store:
        assert store.draft(made.id) == "for it, longer"
        assert store.draft(None) == "for a new one\n  "
        store.save_draft(None, "")
        assert store.draft(None) == ""
        assert store.draft("unknown") == ""


# Versions and damage --------------------------------------------------------------------------


def test_a_newer_file_is_refused_and_left_as_it_is(tmp_path: Path):
    with ConversationStore(tmp_path) as store:
        store.create("precious")
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(Failure, match=f"newer minicpm5-mac .*format {len(MIGRATIONS) + 1}"):
        ConversationStore(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    assert not list(tmp_path.glob("*.damaged*"))


def damaged_header(data: bytes) -> bytes:
    return b"\0" * 64 + data[64:]


def damaged_schema(data: bytes) -> bytes:
    return data[:100] + b"\xff" * 3996 + data[4096:]


DAMAGE = {
    "text": lambda data: b"hello, I am no database\n" * 50,
    "a few bytes": lambda data: b"abc",
    "cut in the header": lambda data: data[:60],
    "header gone": damaged_header,
    "schema page gone": damaged_schema,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_and_named_never_deleted(tmp_path: Path, kind: str):
    with ConversationStore(tmp_path) as store:
        store.create("x")
    file = tmp_path / FILE_NAME
    file.write_bytes(DAMAGE[kind](file.read_bytes()))
    broken = file.read_bytes()
    with ConversationStore(tmp_path) as store:
        assert store.set_aside is not None
        assert store.set_aside.read_bytes() == broken
        assert store.list() == ()
        store.create("goes on")
    with ConversationStore(tmp_path) as store:
        assert store.set_aside is None
        assert [c.title for c in store.list()] == ["goes on"]


def test_two_damaged_files_are_both_kept(tmp_path: Path):
    kept = set()
    for text in (b"one", b"two", b"three"):
        (tmp_path / FILE_NAME).write_bytes(text)
        with ConversationStore(tmp_path) as store:
            kept.add(store.set_aside)
    assert {path.read_bytes() for path in kept} == {b"one", b"two", b"three"}


def test_damage_that_shows_later_is_a_failure_then_set_aside_at_the_next_start(tmp_path: Path):
    with ConversationStore(tmp_path) as store:
        made = store.create("x")
        for number in range(200):
            store.messages.add(made.id, None, "user", f"{number} " * 500)
    file = tmp_path / FILE_NAME
    data = file.read_bytes()
    # The pages of the schema stay, those of the messages do not.
    file.write_bytes(data[: 12 * 4096] + b"\xff" * (len(data) - 12 * 4096))
    with ConversationStore(tmp_path) as store:
        assert store.set_aside is None
        with pytest.raises(Failure) as raised:
            store.messages.all(made.id)
        assert str(file) in str(raised.value)
        assert "damaged" in str(raised.value)
    with ConversationStore(tmp_path) as store:
        assert store.set_aside is not None
        assert store.set_aside.stat().st_size == len(data)
        assert store.list() == ()


def test_an_empty_file_is_a_new_store(tmp_path: Path):
    (tmp_path / FILE_NAME).touch()
    with ConversationStore(tmp_path) as store:
        assert store.set_aside is None
        store.create("x")


def test_a_folder_that_cannot_be_made_is_a_failure(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="cannot be used"):
        ConversationStore(tmp_path / "file" / "data")


def test_a_store_whose_tables_cannot_be_made_leaves_no_half_of_them(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("CREATE TABLE drafts (another TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(Failure, match="cannot be used"):
        ConversationStore(tmp_path)
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("drafts",)]
    connection.close()
