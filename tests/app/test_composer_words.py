"""What is typed, without a screen: slash commands, mentions, completion, history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.attached_files import attached
from minicpm5_mac.app.attachments import (
    files_below,
    mention_text,
    mentioned_files,
    open_mention,
)
from minicpm5_mac.app.completion import complete
from minicpm5_mac.app.input_history import InputHistory
from minicpm5_mac.app.interrupt import Rung, rung
from minicpm5_mac.failure import Failure


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/help", "help", ""),
        ("/think 512", "think", "512"),
        ("/rename  A new  title ", "rename", "A new  title"),
        ("/HELP", "HELP", ""),
    ],
)
def test_a_line_with_a_slash_and_a_word_is_a_command(text: str, name: str, argument: str):
    typed = slash_commands.read(text)
    assert typed is not None
    assert (typed.name, typed.argument) == (name, argument)
    assert typed.command is not None


@pytest.mark.parametrize(
    "text",
    ["hello", "/etc/hosts is a file", "/", "//help", "/help\nme", " /help", "/1", "/思考", ""],
)
def test_everything_else_is_a_message(text: str):
    assert slash_commands.read(text) is None


def test_an_unknown_command_is_named_not_sent():
    typed = slash_commands.read("/hepl")
    assert typed is not None
    assert typed.name == "hepl"
    assert typed.command is None


def test_command_names_are_unique():
    names = [command.name for command in slash_commands.COMMANDS]
    assert len(set(names)) == len(names)


# Mentions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "start", "typed"),
    [
        ("@", 0, ""),
        ("see @no", 4, "no"),
        ('see @"my no', 4, "my no"),
        ("看 @说明", 2, "说明"),
    ],
)
def test_a_mention_is_open_at_the_caret(line: str, start: int, typed: str):
    mention = open_mention(line)
    assert mention is not None
    assert (mention.start, mention.typed) == (start, typed)


@pytest.mark.parametrize("line", ["", "mail@host", "@a b", '@"a b" '])
def test_no_mention_is_open(line: str):
    assert open_mention(line) is None


def test_only_files_that_are_there_are_attached(tmp_path):
    (tmp_path / "notes.txt").write_text("N", encoding="utf-8")
    (tmp_path / "my file.md").write_text("M", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    text = 'Ask @someone about @notes.txt, @"my file.md" and @folder; @notes.txt again.'
    assert mentioned_files(text, tmp_path) == ["notes.txt", "my file.md"]
    files = attached(text, tmp_path)
    assert [(file.path, file.text) for file in files] == [("notes.txt", "N"), ("my file.md", "M")]


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-this-name/x", "a/" * 900, "\ud800"])
def test_a_name_that_no_file_can_have_is_ordinary_text(tmp_path, name: str):
    assert mentioned_files(f"see @{name}", tmp_path) == []


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    with pytest.raises(Failure, match=r"x\.bin"):
        attached("look at @x.bin", tmp_path)


@given(st.text(st.characters(blacklist_characters='\0/\n\r"', blacklist_categories=("Cs",))))
def test_a_written_mention_is_found_again(tmp_path_factory, name: str):
    name = name.strip()[:40]
    folder = tmp_path_factory.mktemp("files")
    path = folder / name
    if name in ("", ".", "..") or name.startswith("~") or len(name.encode()) > 200:
        return
    path.write_text("x", encoding="utf-8")
    assert mentioned_files(f"see {mention_text(name)} please", folder) == [name]


def test_files_are_listed_shallow_ones_first_without_hidden_ones(tmp_path):
    for path in ("b.txt", "a/c.txt", ".git/config", "node_modules/x.js", "a/.hidden"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("", encoding="utf-8")
    assert files_below(tmp_path) == ["b.txt", "a/c.txt"]
    assert files_below(tmp_path, limit=1) == ["b.txt"]


# Completion ---------------------------------------------------------------------------------------


def test_a_slash_offers_every_command_and_letters_narrow_it_down():
    everything = complete("/", True, [])
    assert everything is not None
    assert len(everything.candidates) == len(slash_commands.COMMANDS)
    narrow = complete("/regn", True, [])
    assert narrow is not None
    assert narrow.candidates[0].insert == "/regenerate"
    assert complete("/zzz", True, []) is None


def test_commands_are_offered_at_the_beginning_only():
    assert complete("/he", False, []) is None
    assert complete("say /he", True, []) is None
    assert complete("/help ", True, []) is None


def test_files_are_found_by_letters_in_their_order():
    files = ["src/main.py", "docs/maintenance.md", "m.txt", "tests/test_main.py"]
    completion = complete("see @main", True, files)
    assert completion is not None
    assert completion.start == 4
    assert completion.candidates[0].label == "src/main.py"
    assert {c.label for c in completion.candidates} == set(files) - {"m.txt"}
    assert complete("see @xyz", True, files) is None


# History ------------------------------------------------------------------------------------------


def test_the_draft_comes_back_after_browsing():
    history = InputHistory(["one", "two"])
    assert history.older("draft") == "two"
    assert history.older("two, changed") == "one"
    assert history.older("one") is None
    assert history.newer("one") == "two, changed"
    assert history.newer("two, changed") == "draft"
    assert history.newer("draft") is None


def test_the_same_text_twice_is_one_entry_and_blanks_are_none():
    history = InputHistory(["one", "one", "  ", "\n"])
    assert len(history) == 1


@given(st.lists(st.text(min_size=1)), st.text(), st.lists(st.booleans(), max_size=30))
def test_no_walk_through_the_history_loses_the_draft(entries, draft, steps):
    history = InputHistory(entries)
    text = draft
    for older in steps:
        moved = history.older(text) if older else history.newer(text)
        text = text if moved is None else moved
    while (moved := history.newer(text)) is not None:
        text = moved
    assert text == draft


# Ctrl+C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replying", "draft", "armed", "does"),
    [
        (True, "draft", True, Rung.STOP_REPLY),
        (True, "", False, Rung.STOP_REPLY),
        (False, "draft", True, Rung.CLEAR_DRAFT),
        (False, "draft", False, Rung.CLEAR_DRAFT),
        (False, "", False, Rung.ARM),
        (False, " \n", False, Rung.ARM),
        (False, "", True, Rung.QUIT),
    ],
)
def test_the_ladder_of_ctrl_c(replying: bool, draft: str, armed: bool, does: Rung):
    assert rung(replying=replying, draft=draft, armed=armed) is does
