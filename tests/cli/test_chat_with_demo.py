"""The README's first command where no hub can be reached: the real demo model answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minicpm5_mac import events

QUESTION = "What is the capital of France?"


@pytest.fixture
def chat(real_demo_home: Path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "minicpm5_mac", "chat", "--model", "demo", *arguments]
        home = {"MINICPM5_MAC_HOME": str(real_demo_home)}
        return subprocess.run(
            command,
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def test_it_knows_the_capital_of_france(chat):
    done = chat("-p", QUESTION)
    assert done.returncode == 0
    assert "Paris" in done.stdout


def test_a_second_turn_reads_only_what_is_new_and_a_budget_is_said_to_be_pointless_once(chat):
    done = chat("-p", QUESTION, "-p", "And of Italy?", "--thinking", "16", "--json")
    assert done.returncode == 0, done.stderr
    heard = [events.decode(line) for line in done.stdout.splitlines()]
    first, second = [event for event in heard if isinstance(event, events.ReplyEnd)]
    assert first.ids is not None
    assert second.ids is not None
    known = len(first.ids.prompt) + len(first.ids.generated)
    # The end of the reply was generated too, and is in the history's ids.
    assert second.usage.cached_tokens == known + 1
    assert second.usage.prompt_tokens == known + len(second.ids.prompt)
    assert second.usage.prefilled_tokens == len(second.ids.prompt) - 1
    said = [event for event in heard if isinstance(event, events.Notice) and "think" in event.text]
    assert len(said) == 1
