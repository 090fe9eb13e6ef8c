"""`minicpm5-mac conversations`, with a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicpm5_mac import locations
from minicpm5_mac.cli.main import main
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import ReplyEnd


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ConversationStore:
    monkeypatch.setenv(locations.HOME_VARIABLE, str(tmp_path / "home"))
    return ConversationStore()


def conversation(store: ConversationStore, question: str, answer: str, reasoning: str = "") -> str:
    made = store.create(question).id
    user = store.messages.add(made, None, "user", question)
    reply = store.messages.begin_reply(made, user)
    store.messages.finish_reply(reply, answer, reasoning, (), ReplyEnd("complete", "stop"))
    return made


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(["conversations", *words])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, shown.out, shown.err


def test_list_has_the_one_used_last_first(store: ConversationStore, capsys):
    first = conversation(store, "First question", "a")
    second = conversation(store, "第二个问题", "b")
    code, out, _ = run(capsys, "list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(second[:8])
    assert lines[0].endswith("  2  第二个问题")
    assert lines[1].startswith(first[:8])
    assert run(capsys, "list", "--limit", "1")[1] == lines[0] + "\n"


def test_list_as_json_is_one_object_a_line(store: ConversationStore, capsys):
    made = conversation(store, "Question", "a")
    (line,) = run(capsys, "list", "--json")[1].splitlines()
    fields = json.loads(line)
    assert (fields["id"], fields["title"], fields["messages"]) == (made, "Question", 2)


def test_an_empty_store_says_so(store: ConversationStore, capsys):
    code, out, err = run(capsys, "list")
    assert (code, out) == (0, "")
    assert "no conversations" in err
    assert run(capsys, "list", "--json")[1:] == ("", "")


def test_search_shows_where_the_words_are(store: ConversationStore, capsys):
    made = conversation(store, "Capitals", "The capital of France is Paris.")
    conversation(store, "Other", "Nothing of the kind.")
    code, out, _ = run(capsys, "search", "france", "CAPITAL")
    assert code == 0
    assert out.splitlines()[0].startswith(made[:8])
    assert "assistant: The capital of France is Paris." in out
    hit = json.loads(run(capsys, "search", "paris", "--json")[1])
    assert (hit["id"], hit["role"]) == (made, "assistant")


def test_search_without_a_hit_fails_quietly(store: ConversationStore, capsys):
    code, out, err = run(capsys, "search", "nowhere")
    assert (code, out) == (1, "")
    assert "all of these words" in err


def test_rename(store: ConversationStore, capsys):
    made = conversation(store, "Old", "a")
    assert run(capsys, "rename", made[:6], "New\x1b[2J title")[:2] == (0, "New[2J title\n")
    assert store.get(made).title == "New[2J title"


def test_last_means_the_one_used_last(store: ConversationStore, capsys):
    conversation(store, "First", "a")
    conversation(store, "Second", "the answer")
    code, out, _ = run(capsys, "show", "last")
    assert code == 0
    assert out.startswith("# Second\n")
    assert "the answer" in out


def test_show_has_the_reasoning_only_when_asked(store: ConversationStore, capsys):
    made = conversation(store, "Q", "a", reasoning="let me think")
    assert "let me think" not in run(capsys, "show", made)[1]
    assert "let me think" in run(capsys, "show", made, "--reasoning")[1]


def test_delete_needs_a_yes(store: ConversationStore, capsys):
    one, other = conversation(store, "One", "a"), conversation(store, "Other", "b")
    code, _, err = run(capsys, "delete", one)
    assert code == 1
    assert "--yes" in err
    assert store.get(one)
    assert run(capsys, "delete", one, other[:7], "--yes")[0] == 0
    assert store.list() == ()


def test_delete_touches_nothing_if_one_id_is_wrong(store: ConversationStore, capsys):
    one = conversation(store, "One", "a")
    assert run(capsys, "delete", one, "ffffffffffffffffffffff", "--yes")[0] == 1
    assert store.get(one)


def test_export_to_a_file_never_replaces_one_unasked(
    store: ConversationStore, tmp_path: Path, capsys
):
    made = conversation(store, "Q", "answer")
    file = tmp_path / "out.json"
    assert run(capsys, "export", made, "-o", str(file))[0] == 0
    assert json.loads(file.read_text())["id"] == made
    file.write_text("mine")
    code, _, err = run(capsys, "export", made, "-o", str(file))
    assert code == 1
    assert "--force" in err
    assert file.read_text() == "mine"
    assert run(capsys, "export", made, "-o", str(file), "--format", "markdown", "--force")[0] == 0
    assert file.read_text().startswith("# Q\n")


def test_export_to_standard_output(store: ConversationStore, capsys):
    made = conversation(store, "Q", "answer", reasoning="hm")
    assert "<summary>Reasoning</summary>\n\nhm" in run(capsys, "export", made)[1]
    assert "hm" not in run(capsys, "export", made, "--no-reasoning")[1]
    assert json.loads(run(capsys, "export", made, "--format", "json")[1])["title"] == "Q"


def test_export_to_where_nothing_can_be_written(store: ConversationStore, tmp_path: Path, capsys):
    made = conversation(store, "Q", "a")
    code, _, err = run(capsys, "export", made, "-o", str(tmp_path / "no" / "such.md"))
    assert code == 1
    assert "cannot be written" in err


@pytest.mark.parametrize("words", [("show", "123"), ("show", "last"), ("export", "%")])
def test_an_unknown_id_says_where_to_look(words: tuple[str, str], store, capsys):
    code, out, err = run(capsys, *words)
    assert (code, out) == (1, "")
    assert "no conversation" in err


def test_a_damaged_file_is_named(store: ConversationStore, capsys):
    conversation(store, "Q", "a")
    store.close()
    store.path.write_bytes(b"not a database at all")
    code, out, err = run(capsys, "list")
    assert (code, out) == (0, "")
    (kept,) = store.path.parent.glob("conversations.damaged-*.db")
    assert str(kept) in err
    assert kept.read_bytes() == b"not a database at all"
