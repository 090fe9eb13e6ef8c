"""A command that is written to as it runs: the same wrapper, supervision and end as all others."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import macos
from minicpm5_mac.sandbox.feed import MOST_WAITING, Feed
from minicpm5_mac.sandbox.policy import MIB, Limits, Policy
from minicpm5_mac.sandbox.process import Reason, RunningCommand, start
from minicpm5_mac.sandbox.worker_call import shell_command

LASTING = Limits(lasting=True)


class Heard:
    """What a command wrote, as it comes."""

    def __init__(self) -> None:
        self.text = b""
        self.changed = threading.Condition()

    def __call__(self, _stream: str, chunk: bytes) -> None:
        with self.changed:
            self.text += chunk
            self.changed.notify_all()

    def until(self, ending: bytes) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.text.endswith(ending), 20), self.text[-200:]


def live(workspace: Path, command: str, heard: Heard, **policy) -> RunningCommand:
    policy.setdefault("limits", LASTING)
    return start(Policy(workspace, **policy), shell_command(command), on_output=heard, live=True)


def test_what_is_sent_is_read_at_once_and_closing_ends_it(workspace, sandbox):
    heard = Heard()
    command = live(workspace, "while read line; do echo got $line; done; echo over", heard)
    for word in (b"one", b"two"):
        command.send(word + b"\n")
        heard.until(b"got " + word + b"\n")
    command.close_input()
    ended = command.wait()
    assert (ended.reason, ended.status) == (Reason.EXIT, 0)
    assert ended.stdout.text().endswith("over\n")
    command.send(b"late")  # nobody reads it; nothing happens


def test_more_than_a_pipe_holds_gets_through_in_order(workspace, sandbox):
    heard = Heard()
    command = live(workspace, "sleep 0.2; wc -c", heard)
    for _ in range(40):
        command.send(b"x" * 100_000)
    command.close_input()
    assert command.wait().stdout.text().strip() == "4000000"


def test_it_has_no_time_limit_and_no_limit_of_computing(workspace, sandbox):
    heard = Heard()
    limits = Limits(wall_seconds=0.3, lasting=True)
    command = live(workspace, "ulimit -t; read line; echo $line", heard, limits=limits)
    heard.until(b"unlimited\n")
    time.sleep(0.6)
    command.send(b"still here\n")
    assert command.wait().stdout.text() == "unlimited\nstill here\n"


def test_cancel_ends_it_with_its_tree(workspace, sandbox, alive):
    heard = Heard()
    command = live(workspace, "sleep 417.25 & echo up; cat", heard)
    heard.until(b"up\n")
    command.cancel()
    assert command.wait().reason is Reason.CANCELLED
    assert not alive("sleep\x00417.25")


def test_output_counts_from_the_last_word_that_it_was_sent(workspace, sandbox):
    heard = Heard()
    limits = Limits(lasting=True, output_bytes=MIB)
    half = "while read line; do head -c 700000 /dev/zero | tr '\\0' a; echo; done"
    command = live(workspace, half, heard, limits=limits)
    for number in range(1, 4):
        command.send(b"more\n")
        heard.until(b"a\n")
        with heard.changed:
            heard.changed.wait_for(lambda n=number: len(heard.text) == n * 700_001, 20)
    command.cancel()
    assert command.wait().reason is Reason.CANCELLED

    flooding = live(workspace, "yes", Heard(), limits=limits)
    ended = flooding.wait()
    assert ended.reason is Reason.OUTPUT
    assert ended.stdout.spill is None


def test_given_variables_are_inside_and_on_no_command_line(workspace, sandbox, alive):
    heard = Heard()
    given = (("API_KEY", "s3cret with spaces"), ("LANG", "de_DE.UTF-8"))
    command = live(workspace, 'echo "$API_KEY|$LANG"; read x', heard, environment=given)
    heard.until(b"s3cret with spaces|de_DE.UTF-8\n")
    assert not alive("s3cret")
    command.close_input()
    command.wait()
    with pytest.raises(Failure, match="environment given"):
        live(workspace, "true", heard, environment=(("BIG", "x" * 60_000),)).wait()


def test_on_macos_too_given_variables_are_on_no_command_line(tmp_path, monkeypatch):
    monkeypatch.setattr(macos, "SANDBOX_EXEC", "/bin/sh")
    policy = Policy(tmp_path, environment=(("API_KEY", "s3cret"), ("TERM", "vt100")))
    wrapped = macos.wrap(policy, ["server"], macos.EXAMPLE_RUN_FOLDER)
    assert wrapped.environment == {"PATH": "/usr/bin:/bin", "API_KEY": "s3cret", "TERM": "vt100"}
    assert "s3cret" not in " ".join(wrapped.argv)
    assert "-i" not in wrapped.argv[3:6]
    assert not any(word.startswith("TERM=") for word in wrapped.argv)


def test_who_never_reads_is_told_of_before_memory_is_full():
    feed = Feed(live=True)
    feed.put(b"x" * MOST_WAITING)
    with pytest.raises(Failure, match="does not read"):
        feed.put(b"x")
    assert feed.waiting
    assert not feed.ended
    feed.drop()
    feed.put(b"late")
    assert feed.ended
