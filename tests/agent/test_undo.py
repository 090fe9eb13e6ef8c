"""Taking back what a turn did to files: all of it, also the taking back, and nothing else."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicpm5_mac.agent.undo import scan
from minicpm5_mac.agent.undo.history import UndoHistory
from minicpm5_mac.failure import Failure


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "sub").mkdir()
    (folder / "sub/b.sh").write_text("echo\n")
    (folder / "sub/b.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    return folder


@pytest.fixture
def undo(workspace: Path) -> UndoHistory:
    return UndoHistory(workspace, (workspace,))


def picture(folder: Path) -> dict[str, tuple]:
    """All that can be seen of a folder."""
    seen: dict[str, tuple] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if path.is_symlink():
            seen[str(path)] = ("link", os.readlink(path))
        elif path.is_dir():
            seen[str(path)] = ("folder", mode)
        else:
            seen[str(path)] = ("file", mode, path.read_bytes())
    return seen


def change_everything(folder: Path) -> None:
    (folder / "a.txt").write_text("two\n")
    (folder / "new").mkdir()
    (folder / "new/c.txt").write_text("new\n")
    shutil.rmtree(folder / "sub")
    (folder / "link").unlink()
    (folder / "link").symlink_to("elsewhere")


def test_changes_are_told_taken_back_and_taken_back_again(workspace, undo):
    before = picture(workspace)
    undo.begin("conversation")
    change_everything(workspace)
    turn = undo.finish()
    after = picture(workspace)
    told = {os.path.relpath(c.path, workspace): c.shown().change for c in turn.changes}
    assert told == {
        "a.txt": "changed", "link": "changed", "new": "added", "new/c.txt": "added",
        "sub": "removed", "sub/b.sh": "removed",
    }  # fmt: skip
    first = undo.take_back(turn.id)
    assert first.left == ()
    assert picture(workspace) == before
    assert undo.take_back(first.turn.id).left == ()
    assert picture(workspace) == after
    assert [t.undoes for t in undo.turns()] == [first.turn.id, turn.id, ""]


def test_a_folder_emptied_is_restored_whole(workspace, undo):
    (workspace / "deep/er").mkdir(parents=True)
    (workspace / "deep/er/x").write_bytes(bytes(range(256)))
    (workspace / "deep/er").chmod(0o555)
    before = picture(workspace)
    undo.begin("c")
    (workspace / "deep/er").chmod(0o755)
    for entry in workspace.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    undo.take_back(undo.finish().id)
    assert picture(workspace) == before


def test_a_mode_alone_is_a_change(workspace, undo):
    undo.begin("c")
    (workspace / "a.txt").chmod(0o755)
    turn = undo.finish()
    (change,) = (change.shown() for change in turn.changes)
    assert (change.change, change.executable) == ("mode", True)
    undo.take_back(turn.id)
    assert stat.S_IMODE((workspace / "a.txt").stat().st_mode) == 0o644


def test_nothing_changed_is_no_turn(workspace, undo):
    undo.begin("c")
    (workspace / "a.txt").write_text("one\n")
    assert undo.finish() is None
    assert undo.turns() == ()
    assert undo.finish() is None


def test_what_the_user_changed_since_is_left_alone(workspace, undo):
    undo.begin("c")
    change_everything(workspace)
    turn = undo.finish()
    assert undo.obstacles(turn) == {}
    (workspace / "a.txt").write_text("mine\n")
    (workspace / "sub").write_text("mine too\n")
    assert undo.obstacles(turn)[str(workspace / "a.txt")] == "it changed since"
    done = undo.take_back(turn.id)
    left = {os.path.relpath(path, workspace) for path, _ in done.left}
    assert left == {"a.txt", "sub", "sub/b.sh"}
    assert (workspace / "a.txt").read_text() == "mine\n"
    assert (workspace / "sub").read_text() == "mine too\n"
    assert os.readlink(workspace / "link") == "a.txt"


def test_no_link_is_followed(workspace, undo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.sh").write_text("precious")
    undo.begin("c")
    (workspace / "sub/b.sh").write_text("changed\n")
    turn = undo.finish()
    shutil.rmtree(workspace / "sub")
    (workspace / "sub").symlink_to(outside)
    done = undo.take_back(turn.id)
    assert len(done.left) == 1
    assert (outside / "b.sh").read_text() == "precious"
    assert os.listdir(outside) == ["b.sh"]


def test_an_app_that_was_killed_finds_its_turn_again(workspace, undo):
    before = picture(workspace)
    undo.begin("conversation")
    change_everything(workspace)
    again = UndoHistory(workspace, (workspace,))
    (turn,) = again.turns()
    assert turn.conversation == "conversation"
    again.take_back(turn.id)
    assert picture(workspace) == before


def test_a_preview_shows_the_diff_of_both_ways_with_nothing_hidden(workspace, undo):
    undo.begin("c")
    (workspace / "a.txt").write_text("t\u202ewo\x1b\n")
    (workspace / "x.bin").write_bytes(b"\0" * 5)
    text, binary = undo.finish().changes
    assert "-one\n+t⟨U+202E⟩wo␛\n" in undo.diff(text)
    assert "-t⟨U+202E⟩wo␛\n+one\n" in undo.diff(text, reverse=True)
    assert "--- /dev/null" in undo.diff(binary)
    assert "5 bytes" in undo.diff(binary)


def test_what_is_too_large_to_keep_is_told_and_left(workspace, undo, monkeypatch):
    monkeypatch.setattr(scan, "LARGEST_FILE", 100)
    (workspace / "large").write_bytes(b"x" * 200)
    undo.begin("c")
    (workspace / "large").write_bytes(b"y" * 201)
    (workspace / "a.txt").write_text("two\n")
    turn = undo.finish()
    kept = {os.path.basename(c.path): c.shown().kept for c in turn.changes}
    assert kept == {"large": False, "a.txt": True}
    done = undo.take_back(turn.id)
    assert [os.path.basename(path) for path, _ in done.left] == ["large"]
    assert (workspace / "a.txt").read_text() == "one\n"


def test_only_so_many_turns_and_bytes_are_kept(workspace, undo, monkeypatch, own_home):
    monkeypatch.setattr("minicpm5_mac.agent.undo.history.MOST_TURNS", 3)
    for number in range(6):
        undo.begin("c")
        (workspace / "a.txt").write_text(f"text {number}\n")
        undo.finish()
    assert len(undo.turns()) == 3
    contents = list((own_home / "data/undo").glob("*/contents/*"))
    # Three turns need four contents of a.txt; b.sh is there as it is.
    assert len(contents) == 5
    with pytest.raises(Failure):
        undo.turn("00000000000000000001-abcdef")


def test_git_s_own_folder_is_not_looked_into(workspace, undo):
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_text("x")
    undo.begin("c")
    (workspace / ".git/HEAD").write_text("y")
    assert undo.finish() is None


NAMES = st.sampled_from(["a", "b", "c", "d/e", "d/f", "g/h/i"])
STATES = st.one_of(
    st.none(),
    st.tuples(st.binary(max_size=20), st.sampled_from([0o644, 0o755, 0o600])),
    st.sampled_from(["a", "../outside"]),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=st.dictionaries(NAMES, STATES), second=st.dictionaries(NAMES, STATES))
def test_any_change_is_taken_back(tmp_path_factory, first, second):
    workspace = tmp_path_factory.mktemp("any")
    put(workspace, first)
    undo = UndoHistory(workspace, (workspace,))
    before = picture(workspace)
    undo.begin("c")
    put(workspace, second)
    turn = undo.finish()
    assert (turn is None) == (picture(workspace) == before)
    if turn is not None:
        assert undo.take_back(turn.id).left == ()
        assert picture(workspace) == before


def put(folder: Path, states: dict) -> None:
    for name, state in states.items():
        path = folder / name
        path.unlink(missing_ok=True)
        if state is None:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(state, str):
            path.symlink_to(state)
        else:
            path.write_bytes(state[0])
            path.chmod(state[1])
