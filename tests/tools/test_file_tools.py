"""File tools in the sandbox: what they do, what they refuse, and what they say then."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from minicpm5_mac.tools import write_file
from minicpm5_mac.tools.place import ToolError
from minicpm5_mac.tools.text_page import LINE_BYTES, PAGE_BYTES


@pytest.fixture
def outside(workspace: Path) -> Path:
    """A file that no tool may reach, beside the workspace."""
    folder = workspace.parent / "outside"
    folder.mkdir()
    secret = folder / "secret.txt"
    secret.write_text("top secret")
    return secret


# Reading ----------------------------------------------------------------------------------------


def test_a_short_file_is_given_as_it_is(call, workspace):
    (workspace / "a.txt").write_text("one\ntwo")
    assert call("read_file", path="a.txt").text == "one\ntwo"
    assert call("read_file", path=str(workspace / "a.txt")).text == "one\ntwo"


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "../outside/secret.txt", "/etc/passwd", "/proc/self/environ", "link",
     "sub/../../outside/secret.txt", "folder-link/secret.txt", "/../etc/passwd"],
)  # fmt: skip
def test_nothing_outside_is_read_also_what_the_sandbox_shows(call, workspace, outside, path):
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "folder-link").symlink_to("../outside")
    result = call("read_file", path=path)
    assert result.outcome == "error"
    assert "outside of" in result.text
    assert "secret" not in result.text.replace("secret.txt", "")
    assert "root:" not in result.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "Use list_dir"),
        ("nothing.txt", "There is no nothing.txt"),
        ("noets.txt", "Similar names there: notes.txt"),
        ("missing/deeper.txt", "a folder on the way is missing"),
        ("notes.txt/x", "no folder"),
        ("x" * 300, "ENAMETOOLONG"),
        ("circle", "circle"),
        ("pipe", "no regular file"),
    ],
)
def test_each_thing_that_cannot_be_read_has_its_own_words(call, workspace, path, words):
    (workspace / "folder").mkdir()
    (workspace / "notes.txt").write_text("milk")
    (workspace / "circle").symlink_to("circle")
    os.mkfifo(workspace / "pipe")
    result = call("read_file", path=path)
    assert result.outcome == "error"
    assert words in result.text


def test_an_empty_file_and_a_binary_one_are_named(call, workspace):
    (workspace / "empty").write_text("")
    (workspace / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0" * 9)
    assert call("read_file", path="empty").text == "[empty file]"
    assert call("read_file", path="image.png").text == "[binary, 90 bytes, not shown]"


def test_a_name_in_another_normal_form_is_found_or_offered(call, workspace):
    (workspace / "é.txt").write_text("composed")
    result = call("read_file", path="e\u0301.txt")
    assert result.text == "composed" or "é.txt" in result.text


def test_pages_give_the_whole_file_and_say_how_to_go_on(call, workspace):
    lines = [f"line {i}\n" for i in range(1, 1001)]
    (workspace / "long.txt").write_text("".join(lines))
    first = call("read_file", path="long.txt").text
    assert "[lines 1-400 of 1,000; the next page: start=401]" in first
    assert (
        "[lines 401-800 of 1,000; the next page: start=801]"
        in call("read_file", path="long.txt", start=401).text
    )
    assert call("read_file", path="long.txt", start=999).text == (
        "line 999\nline 1000\n[lines 999-1,000 of 1,000; the end]"
    )
    assert "has 1,000" in call("read_file", path="long.txt", start=1001).text
    assert call("read_file", path="long.txt", start=5, lines=1).text.startswith("line 5\n[")


def test_one_line_of_50_megabytes_is_cut(call, workspace):
    with (workspace / "line.txt").open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 1_000_000)
    result = call("read_file", path="line.txt")
    assert len(result.text) < PAGE_BYTES
    assert f"50,000,000 bytes; {LINE_BYTES:,} shown" in result.text


def test_what_hides_or_steers_in_a_file_is_made_visible(call, workspace):
    (workspace / "evil.txt").write_text("a\x1b]52;c;aGk=\x07b\u202ec\x9bd")
    text = call("read_file", path="evil.txt").text
    assert not any(mark in text for mark in "\x1b\x07\u202e\x9b")
    assert "U+202E" in text


# Listing ----------------------------------------------------------------------------------------


def test_a_listing_tells_folders_programs_and_links(call, workspace):
    (workspace / "src").mkdir()
    (workspace / "run.sh").write_text("")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("src")
    assert call("list_dir").text == "link -> src\nrun.sh*\nsrc/"
    assert call("list_dir", path="src").text == "[empty folder]"
    assert "Use read_file" in call("list_dir", path="run.sh").text


def test_names_with_line_ends_or_controls_are_one_visible_line(call, workspace):
    (workspace / "a\nb").write_text("")
    (workspace / "c\x1b[2Jd\u202e").write_text("")
    lines = call("list_dir").text.splitlines()
    assert len(lines) == 2
    assert not any(mark in "".join(lines) for mark in "\x1b\u202e")


def test_a_long_listing_comes_in_pages(call, workspace):
    for number in range(250):
        (workspace / f"f{number:03}").touch()
    text = call("list_dir").text
    assert text.endswith("[entries 1-200 of 250; the next page: start=201]")
    assert call("list_dir", start=201).text.startswith("f200\n")


@pytest.mark.parametrize("path", ["..", "/", "/etc", "up"])
def test_nothing_outside_is_listed(call, workspace, path):
    (workspace / "up").symlink_to("..")
    assert "outside of" in call("list_dir", path=path).text


# Writing ----------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_folders_and_replaced_with_its_mode(call, workspace):
    assert call("write_file", path="a/b/new.txt", content="hello").text.startswith("Wrote")
    path = workspace / "a/b/new.txt"
    assert path.read_text() == "hello"
    path.chmod(0o750)
    assert call("write_file", path="a/b/new.txt", content="bye").text.startswith("Replaced")
    assert path.read_text() == "bye"
    assert path.stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(path.parent)) == ["new.txt"]


@pytest.mark.parametrize(
    "path",
    ["../outside/secret.txt", "/tmp/x", "link", "folder-link/new.txt", "../ws-evil",
     "made/../../outside/new.txt"],
)  # fmt: skip
def test_nothing_outside_is_written(call, workspace, outside, path):
    (workspace / "link").symlink_to("../outside/secret.txt")
    (workspace / "folder-link").symlink_to("../outside")
    result = call("write_file", path=path, content="evil")
    assert result.outcome == "error"
    assert outside.read_text() == "top secret"
    assert os.listdir(outside.parent) == ["secret.txt"]
    assert not (workspace.parent / "ws-evil").exists()


def test_a_link_inside_leads_to_its_target_and_stays_a_link(call, workspace):
    (workspace / "real.txt").write_text("old")
    (workspace / "link").symlink_to("real.txt")
    call("write_file", path="link", content="new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real.txt").read_text() == "new"


@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", ".GIT/HOOKS/pre-commit", ".vscode/tasks.json", ".envrc",
     "sub/.git/config", "sub/.vscode/tasks.json", ".zshrc", ".mcp.json"],
)  # fmt: skip
def test_settings_that_others_obey_are_never_written(call, workspace, path):
    (workspace / ".git").mkdir()
    (workspace / "sub").mkdir()
    result = call("write_file", path=path, content="evil")
    assert result.outcome == "error"
    assert not (workspace / path).exists()


def test_a_read_only_file_keeps_its_content(call, workspace):
    path = workspace / "fixed.txt"
    path.write_text("old")
    path.chmod(0o444)
    assert "read-only" in call("write_file", path="fixed.txt", content="new").text
    assert "read-only" in call("edit_file", path="fixed.txt", old="old", new="new").text
    assert path.read_text() == "old"


def test_a_write_that_breaks_off_leaves_the_old_content_and_nothing_else(call, toolbox, workspace):
    """A file-size limit breaks writing off in the middle, as a full disk does."""
    path = workspace / "kept.txt"
    path.write_text("old\n")
    limits = replace(toolbox.policy.limits, file_bytes=4096)
    toolbox.policy = replace(toolbox.policy, limits=limits)
    assert call("read_file", path="kept.txt").outcome == "ok"
    for result in (
        call("write_file", path="kept.txt", content="new\n" * 5000),
        call("edit_file", path="kept.txt", old="old", new="new " * 5000),
        call("write_file", path="new.txt", content="new\n" * 5000),
    ):
        assert result.outcome == "error"
        assert "Traceback" not in result.text
    assert path.read_text() == "old\n"
    assert [entry.name for entry in workspace.iterdir()] == ["kept.txt"]


def test_a_folder_is_not_overwritten(call, workspace):
    (workspace / "folder").mkdir()
    assert "is a folder" in call("write_file", path="folder", content="x").text


@pytest.mark.parametrize("confined", [True, False])
def test_swapping_links_under_a_writer_never_leads_outside(call, workspace, outside, confined):
    """In the sandbox a few times; thousands of times with the path's walk as the only defence."""
    target = workspace / "dir"
    (workspace / "inside").mkdir()
    target.symlink_to("inside")
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            new = workspace / f"swap{number % 2}"
            new.symlink_to("../outside" if number % 2 else "inside")
            os.replace(new, target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    written = 0
    try:
        for number in range(5 if confined else 3000):
            if confined:
                written += call("write_file", path="dir/secret.txt", content="evil").outcome == "ok"
                continue
            with contextlib.suppress(ToolError):
                place = {"roots": [[str(workspace), True]]}
                write_file.run("dir/secret.txt", f"evil {number}", place=place)
                written += 1
    finally:
        stop.set()
        swapper.join()
    assert outside.read_text() == "top secret"
    assert os.listdir(outside.parent) == ["secret.txt"]
    assert confined or written, "the writer never got through: nothing was tried"


# Editing ----------------------------------------------------------------------------------------


def test_an_edit_replaces_exactly_one_place(call, workspace):
    path = workspace / "a.py"
    path.write_text("x = 1\ny = 2\n")
    result = call("edit_file", path="a.py", old="y = 2", new="y = 3")
    assert result.text == "Edited a.py (line 2)."
    assert path.read_text() == "x = 1\ny = 3\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("absent", "x", "was not found"),
        ("same", "x", "was found 2 times"),
        ("", "x", "old is empty"),
        ("one", "one", "nothing would change"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(call, workspace, old, new, words):
    path = workspace / "a.txt"
    path.write_text("one same\ntwo same\n")
    result = call("edit_file", path="a.txt", old=old, new=new)
    assert (result.outcome, words in result.text) == ("error", True)
    assert path.read_text() == "one same\ntwo same\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("edit_file", {"old": "old", "new": "new"}), ("write_file", {"content": "new"})],
)
def test_a_file_that_changed_since_it_was_read_is_read_again_first(
    call, workspace, name, arguments
):
    path = workspace / "a.txt"
    path.write_text("old")
    call("read_file", path="a.txt")
    path.write_text("old, but longer")
    result = call(name, path="a.txt", **arguments)
    assert "Read it again" in result.text
    assert path.read_text() == "old, but longer"
    call("read_file", path="a.txt")
    assert call(name, path="a.txt", **arguments).outcome == "ok"
    assert call(name, path="a.txt", **{**arguments, "old": "new", "new": "old"}
                if name == "edit_file" else {"content": "again"}).outcome == "ok"  # fmt: skip


def test_line_ends_of_a_file_stay_as_they_are(call, workspace):
    path = workspace / "dos.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert call("read_file", path="dos.txt").text == "one\ntwo\nthree\n"
    call("edit_file", path="dos.txt", old="one\ntwo", new="1\n2")
    assert path.read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_what_is_no_utf8_is_not_edited(call, workspace):
    path = workspace / "latin.txt"
    path.write_bytes(b"caf\xe9 old")
    assert "no UTF-8 text" in call("edit_file", path="latin.txt", old="old", new="new").text
    assert path.read_bytes() == b"caf\xe9 old"


def test_more_than_a_tool_may_write_is_refused_and_nothing_is_left(call, toolbox, workspace):
    (workspace / "a.txt").write_text("old")
    limits = replace(toolbox.policy.limits, file_bytes=100_000)
    toolbox.policy = replace(toolbox.policy, limits=limits)
    result = call("write_file", path="a.txt", content="x" * 200_000)
    assert result.outcome != "ok"
    assert (workspace / "a.txt").read_text() == "old"
    assert os.listdir(workspace) == ["a.txt"]
