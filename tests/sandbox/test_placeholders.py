"""Placeholders hold absent names, are shared by runs that overlap, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from minicpm5_mac.sandbox.placeholders import Placeholders, sweep


def test_absent_names_are_made_and_removed_existing_ones_kept(workspace):
    (workspace / "there").mkdir()
    held = Placeholders([workspace / "there", workspace / "absent"])
    assert held.paths == (workspace / "absent",)
    assert (workspace / "absent").is_dir()
    held.remove()
    held.remove()
    assert os.listdir(workspace) == ["there"]


def test_the_last_of_overlapping_runs_removes(workspace):
    name = workspace / ".git"
    first, second = Placeholders([name]), Placeholders([name])
    first.remove()
    assert name.is_dir()
    third = Placeholders([name])
    second.remove()
    assert name.is_dir()
    third.remove()
    assert not name.exists()


def test_what_the_user_put_there_meanwhile_stays(workspace):
    held = Placeholders([workspace / ".git"])
    (workspace / ".git" / "HEAD").write_text("ref")
    held.remove()
    assert os.listdir(workspace / ".git") == ["HEAD"]


def test_a_folder_that_was_there_empty_is_never_removed(workspace):
    (workspace / ".git").mkdir()
    Placeholders([workspace / ".git"]).remove()
    assert (workspace / ".git").is_dir()


def kill_while_holding(path) -> None:
    code = (
        "import os, sys; from pathlib import Path; "
        "from minicpm5_mac.sandbox.placeholders import Placeholders; "
        "held = Placeholders([Path(sys.argv[1])]); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9


def test_what_a_killed_app_left_is_swept(workspace):
    kill_while_holding(workspace / ".git")
    assert (workspace / ".git").is_dir()
    sweep()
    assert os.listdir(workspace) == []


def test_a_later_run_takes_over_what_a_killed_app_left(workspace):
    kill_while_holding(workspace / ".git")
    Placeholders([workspace / ".git"]).remove()
    assert os.listdir(workspace) == []


def test_an_entry_cut_off_in_the_middle_hurts_nobody(workspace, app_home):
    Placeholders([workspace / "x"]).remove()
    ledger = app_home / "cache" / "sandbox" / "placeholders"
    (ledger / "broken.json").write_text(json.dumps([str(workspace / "y")])[:9])
    Placeholders([workspace / "x"]).remove()
    assert os.listdir(workspace) == []
    assert sorted(path.name for path in ledger.iterdir()) == ["lock"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(workspace):
    workspace.chmod(0o500)
    with pytest.raises(OSError, match="ermission"):
        Placeholders([workspace / ".git"])
    workspace.chmod(0o700)
    assert os.listdir(workspace) == []
