"""One chat with a model in memory; who comes second is told where it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from minicpm5_mac.launcher.single_instance import (
    OpenChat,
    SingleInstance,
    bring_to_front,
    by_hand_here,
    lock_file,
    open_here,
)

HOLD = """
import sys
from minicpm5_mac.launcher.single_instance import open_here
here = open_here("terminal", "/dev/ttys003")
print("held", flush=True)
sys.stdin.read()
"""

HOLD_AND_EXEC = """
import os, sys
from minicpm5_mac.launcher.single_instance import open_here
here = open_here("terminal")
here.pass_on()
os.execv("/bin/cat", ["cat", "/dev/stdin"])
"""


def held(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_the_second_is_told_where_and_since_when_and_the_lock_dies_with_its_holder():
    with held(HOLD) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        there = open_here("window")
        assert isinstance(there, OpenChat)
        assert (there.place, there.pid, there.terminal) == ("terminal", holder.pid, "/dev/ttys003")
        assert str(there).startswith("in a terminal (/dev/ttys003), since ")
        holder.kill()
    here = open_here("window")
    assert isinstance(here, SingleInstance)
    here.release()
    here.release()


def test_the_program_that_follows_by_exec_holds_the_lock():
    with held(HOLD_AND_EXEC) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write("there\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "there\n"  # the other program runs now
        assert isinstance(open_here("window"), OpenChat)
        holder.stdin.close()
    freed = open_here("window")
    assert isinstance(freed, SingleInstance)
    freed.release()


def test_a_file_that_says_nothing_useful_is_still_a_lock():
    here = open_here("window")
    assert isinstance(here, SingleInstance)
    lock_file().write_text("{not json")
    assert open_here("window") is None
    here.release()


def test_the_file_is_for_this_user_alone_and_a_window_that_is_gone_cannot_come_to_the_front():
    here = open_here("window")
    assert isinstance(here, SingleInstance)
    assert lock_file().stat().st_mode & 0o777 == 0o600
    assert not bring_to_front(here.chat)  # it does not listen yet
    here.listen_at(1)
    there = open_here("window")
    assert isinstance(there, OpenChat)
    assert there.port == 1
    assert not bring_to_front(there)  # nobody listens there
    here.release()


def test_a_chat_started_by_hand_is_found_by_the_app_and_frees_the_lock():
    with by_hand_here() as notice:
        assert notice == ""
        there = open_here("window")
        assert isinstance(there, OpenChat)
        assert (there.place, there.pid) == ("terminal", os.getpid())
        with by_hand_here() as again:  # the same process, as after an `exec` with the lock
            assert again == ""
    freed = open_here("window")
    assert isinstance(freed, SingleInstance)
    freed.release()


def test_a_second_chat_started_by_hand_is_told_where_the_first_is_and_opens():
    with held(HOLD) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with by_hand_here() as notice:
            assert notice.startswith("The model is in memory in a terminal (/dev/ttys003), since ")
            assert "a second time" in notice
        holder.kill()


def test_where_no_file_can_be_written_a_chat_started_by_hand_opens_all_the_same(own_home: Path):
    own_home.write_text("a file where the folder should be")
    with by_hand_here() as notice:
        assert notice == ""
