"""Standard streams that are closed, or whose disk is full: one clear line, or nothing at all."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.locations import log_dir

FULL = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no /dev/full")


def shell(words: str, streams: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m minicpm5_mac {words} {streams}"
    done = subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
    assert "should not have" not in done.stderr
    assert not (log_dir() / "faults.log").exists()
    return done


@pytest.fixture
def words(request: pytest.FixtureRequest, tiny_model) -> str:
    with ConversationStore() as store:
        kept = store.create("kept").id
        # More than any buffer, so that it is written past all of them.
        store.messages.add(kept, None, "user", "word " * 50_000)
    places = {"MODEL": shlex.quote(str(tiny_model)), "ID": kept}
    return request.param.format_map(places)


WRITES = (
    "--version",
    "chat --help",
    "config show",
    "config path",
    "conversations list",
    "conversations export {ID}",
    "parse",
    "chat --model {MODEL} -p hi",
    "chat --model {MODEL} -p hi --json",
)


@pytest.mark.parametrize("words", WRITES, indirect=True)
@pytest.mark.parametrize("streams", [">&-", pytest.param(">/dev/full", marks=FULL)])
def test_standard_output_that_cannot_be_written_is_one_clear_line(words: str, streams: str):
    done = shell(words, streams)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("minicpm5-mac: standard output cannot be written: ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("config show", 0),
        ("chat --model {MODEL} -p hi", 0),
        ("chat --model {MODEL} -p hi --show-reasoning --max-tokens 2", 4),
        ("chat --model /no/where -p hi", 3),
        ("chat --bogus", 2),
    ],
    indirect=["words"],
)
@pytest.mark.parametrize("streams", ["2>&-", pytest.param("2>/dev/full", marks=FULL)])
def test_standard_error_that_cannot_be_written_changes_nothing(words: str, code: int, streams: str):
    done = shell(words, streams)
    assert done.returncode == code
    assert bool(done.stdout) == (code in (0, 4))


def test_standard_input_that_is_closed_is_empty():
    done = shell("parse", "<&-")
    assert done.returncode == 0
    assert '"content": ""' in done.stdout


def test_all_streams_may_be_closed_and_no_file_gets_what_was_meant_for_them(tiny_model):
    with ConversationStore() as store:
        kept = store.create("kept").id
    model = shlex.quote(str(tiny_model))
    done = shell(f"chat --model {model} -p hi --resume {kept}", "<&- >&- 2>&-")
    assert done.returncode == 1
    with ConversationStore() as store:
        assert store.set_aside is None
        said = store.messages.path(kept, store.get(kept).head)
        assert [message.role for message in said] == ["user", "assistant"]
