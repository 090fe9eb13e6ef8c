"""`minicpm5-mac chat -p`: the answer alone on stdout, the right exit code, one event a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny.prompts import prompt

from minicpm5_mac import events
from minicpm5_mac.conversations.store import ConversationStore


def chat(*arguments: str, model: Path | str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minicpm5_mac", "chat", "--model", str(model), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def question(name: str) -> str:
    return prompt(name).messages()[-1]["content"]


def test_only_the_answer_is_on_standard_output(tiny_model):
    done = chat("-p", question("capital"), "--temperature", "0", model=tiny_model)
    assert done.returncode == 0
    assert done.stdout.strip() == prompt("capital").replies[0].content
    assert "think" not in done.stdout


def test_reasoning_goes_to_standard_error_when_asked_for(tiny_model):
    asked = ("-p", question("capital"), "--temperature", "0", "--show-reasoning")
    done = chat(*asked, model=tiny_model)
    assert prompt("capital").replies[0].reasoning in done.stderr
    assert done.stdout.strip() == prompt("capital").replies[0].content


def test_standard_input_is_a_prompt_and_is_appended_to_one(tiny_model):
    alone = chat("--temperature", "0", model=tiny_model, stdin=question("capital") + "\n")
    assert alone.stdout.strip() == prompt("capital").replies[0].content

    both = chat("-p", "one", "--json", "--max-tokens", "1", model=tiny_model, stdin="two\n")
    ends = [json.loads(line) for line in both.stdout.splitlines()]
    assert ends[-1]["event"] == "reply_end"


def test_json_is_one_event_a_line_and_a_second_turn_reads_only_what_is_new(tiny_model):
    done = chat("-p", question("capital"), "-p", "Thanks", "--temperature", "0", "--json",
                model=tiny_model)  # fmt: skip
    heard = [events.decode(line) for line in done.stdout.splitlines()]
    assert isinstance(heard[-1], events.ReplyEnd)
    first, second = [e for e in heard if isinstance(e, events.ReplyEnd)]
    assert first.usage.cached_tokens == 0
    assert first.ids is not None
    assert second.usage.cached_tokens >= len(first.ids.prompt) + len(first.ids.generated)
    assert second.ids is not None
    assert second.usage.prefilled_tokens <= len(second.ids.prompt)


def test_ids_of_messages_are_told_only_where_they_are_kept(tiny_model):
    asked = ("-p", "x", "--json", "--max-tokens", "2")
    alone = chat(*asked, model=tiny_model)
    assert "reply_end" in alone.stdout
    assert "message_saved" not in alone.stdout

    with ConversationStore() as store:
        kept = store.create("kept").id
    resumed = chat(*asked, "--resume", kept, model=tiny_model)
    heard = [events.decode(line) for line in resumed.stdout.splitlines()]
    saved = [event for event in heard if isinstance(event, events.MessageSaved)]
    assert [event.role for event in saved] == ["user", "assistant"]
    assert {event.conversation for event in saved} == {kept}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-p", "x", "--max-tokens", "2"), 4, "minicpm5-mac: the reply was cut off: the limit of"),
        (("-p", "x", "--max-tokens", "2", "--json"), 4, "cut off"),
        (("-p", "  "), 2, "empty"),
        ((), 2, "no terminal"),
        (("--json",), 2, "-p"),
        (("-p", "x", "--thinking", "maybe"), 2, "on, off or a whole number of tokens, at least 1"),
        (("-p", "x", "--thinking", "0"), 2, "on, off or a whole number of tokens, at least 1"),
        (("-p", "x", "--max-tokens", "0"), 2, "less than 1"),
        (("-p", "x", "--top-p", "7"), 2, "between 0 and 1"),
        (("-p", "x", "--resume", "nope"), 1, "nope"),
        (("-p", "x", "--continue"), 1, "no conversation"),
    ],
)
def test_exit_codes(tiny_model, arguments, code, words):
    done = chat(*arguments, model=tiny_model)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_reasoning_that_is_cut_off_ends_its_line(tiny_model):
    asked = ("-p", question("capital"), "--temperature", "0", "--show-reasoning")
    done = chat(*asked, "--max-tokens", "3", model=tiny_model)
    assert done.returncode == 4
    assert "\nminicpm5-mac: the reply was cut off" in done.stderr


def test_a_conversation_that_no_longer_fits_is_answered_with_what_to_do(tiny_model):
    said = ("-p", "Paris is the capital. " * 14) * 3
    done = chat(*said, "--context", "256", "--thinking", "off", "--max-tokens", "40",
                "--temperature", "0", model=tiny_model)  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "no longer fits" in done.stderr
    assert "--context" in done.stderr
    assert 'when_full = "shorten"' in done.stderr


def test_a_model_that_is_not_there_is_exit_code_3(tmp_path):
    done = chat("-p", "x", model=tmp_path / "nothing")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_demo_way_is_named_where_the_hub_is_out_of_reach(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", "/nonexistent/hf")
    done = chat("-p", "x", model="2b")
    assert done.returncode == 3
    assert "--model demo" in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly(tiny_model):
    command = (
        f"{sys.executable} -m minicpm5_mac chat --model {tiny_model} --temperature 0 "
        f"-p '{question('long_answer')}' | head -c 10"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert len(done.stdout) == 10


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("chat --bogus", "minicpm5-mac chat "),
        ("conversations export last --bogus", "minicpm5-mac conversations export "),
        ("config show more", "minicpm5-mac config show "),
    ],
)
def test_a_mistake_shows_the_usage_of_its_command(capsys, words, usage):
    from minicpm5_mac.cli.main import main

    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {usage}")
    assert "unrecognized arguments" in said
    assert words.split()[-1] in said


def test_faults_of_ours_are_logged_and_told_in_words(monkeypatch, capsys):
    from minicpm5_mac.cli import main as command
    from minicpm5_mac.locations import log_dir

    def broken(*_):
        raise ZeroDivisionError("by us")

    monkeypatch.setattr("minicpm5_mac.configuration.reading.load_configuration", broken)
    assert command.main(["chat", "-p", "x"]) == 1
    assert "ZeroDivisionError" in (log_dir() / "faults.log").read_text()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["dumb", "", None])
def test_a_terminal_that_cannot_be_drawn_on_gets_plain_lines(tiny_model, kind):
    environment = {name: value for name, value in os.environ.items() if name != "TERM"}
    if kind is not None:
        environment["TERM"] = kind
    outside, terminal = os.openpty()
    os.write(outside, b"/quit\n")
    done = subprocess.run(
        [sys.executable, "-m", "minicpm5_mac", "chat", "--model", str(tiny_model)],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        timeout=120,
    )
    os.close(terminal)
    shown = os.read(outside, 65536).decode()
    os.close(outside)
    assert done.returncode == 0, done.stderr
    assert f"TERM={kind or ''}) cannot show the app" in done.stderr
    assert "You: " in shown
    assert "\x1b" not in shown
