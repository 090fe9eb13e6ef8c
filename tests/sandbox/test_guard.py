"""What the guard is told: every run that is going on, also after it was killed itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from minicpm5_mac.sandbox import guard


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A guard that only writes down what it hears; returns how to read that."""
    heard = tmp_path / "heard"
    guards: list[subprocess.Popen[bytes]] = []

    def start():
        started = subprocess.Popen(
            ["/bin/sh", "-c", f"exec cat >> '{heard}'"], stdin=subprocess.PIPE, bufsize=0
        )
        guards.append(started)
        return started

    monkeypatch.setattr(guard, "_start", start)
    monkeypatch.setattr(guard, "_guard", None)

    def read() -> list[str]:
        for each in guards:
            if each.stdin is not None:
                each.stdin.close()
            each.wait()
        return heard.read_text().splitlines()

    yield guards, read
    for each in guards:
        each.kill()
        each.wait()


def test_a_run_is_announced_and_taken_back(told):
    _, read = told
    with guard.watching(41, Path("/tmp/a b")), guard.watching(42, Path("/tmp/c")):
        pass
    assert read() == ["+ 41 /tmp/a b", "+ 42 /tmp/c", "- 42", "- 41"]


def test_a_killed_guard_is_replaced_and_told_everything(told):
    guards, read = told
    with guard.watching(41, Path("/tmp/a")):
        guards[0].kill()
        guards[0].wait()
        with guard.watching(42, Path("/tmp/b")):
            pass
    assert len(guards) == 2
    assert read()[-4:] == ["+ 41 /tmp/a", "+ 42 /tmp/b", "- 42", "- 41"]


def test_a_run_that_failed_is_taken_back(told):
    _, read = told
    with pytest.raises(LookupError), guard.watching(43, Path("/tmp/d")):
        raise LookupError
    assert read() == ["+ 43 /tmp/d", "- 43"]
