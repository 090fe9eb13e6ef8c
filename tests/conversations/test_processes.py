"""Several processes on one store: nothing is lost, nobody is turned away."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from minicpm5_mac.conversations.store import ConversationStore

# Waits for a line, so that all begin at once; then writes messages, replies, drafts, titles.
WRITER = """
import sys
from pathlib import Path
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import ReplyEnd

folder, shared, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
with ConversationStore(folder) as store:
    own = store.create(name)
    parent = None
    for number in range(25):
        store.messages.add(shared, None, "user", f"{name} {number}") if shared else None
        parent = store.messages.add(own.id, parent, "user", f"{number}")
        parent = store.messages.begin_reply(own.id, parent)
        store.messages.save_reply(parent, "part", "")
        end = ReplyEnd("complete", "stop")
        store.messages.finish_reply(parent, f"answer {number}", "", (), end)
        store.save_draft(None, f"{name} {number}")
"""


def run_writers(folder: Path, shared: str, count: int) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), shared, f"writer {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        )
        for number in range(count)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate()
        assert (writer.returncode, errors) == (0, "")


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path):
    with ConversationStore(tmp_path) as store:
        shared = store.create("shared").id
        run_writers(tmp_path, shared, 3)
        kept = Counter(m.content for m in store.messages.all(shared))
        assert kept == Counter(f"writer {w} {n}" for w in range(3) for n in range(25))
        for conversation in store.list():
            if conversation.id != shared:
                path = store.messages.path(conversation.id, conversation.head)
                assert len(path) == 50
                assert path[-1].content == "answer 24"
                assert {m.state for m in path} == {"done"}
        assert store.draft(None).endswith(" 24")


def test_processes_that_all_find_no_store_make_one_together(tmp_path: Path):
    folder = tmp_path / "new" / "data"
    run_writers(folder, "", 3)
    with ConversationStore(folder) as store:
        assert store.set_aside is None
        assert {c.title for c in store.list()} == {f"writer {n}" for n in range(3)}
        assert not list((folder / "writers").iterdir())
