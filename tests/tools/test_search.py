"""Searching: what is found, what is left out, and patterns that would never end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from minicpm5_mac.tools.path_patterns import Ignored, glob_matches


@pytest.fixture
def project(workspace: Path) -> Path:
    for path, text in {
        "main.py": "import os\n# TODO: one\n",
        "src/deep/util.py": "x = 1\n# TODO: two\n",
        "src/notes.md": "TODO: three\n",
        "build/out.py": "# TODO: built\n",
        ".gitignore": "build/\n*.log\n!keep.log\n",
        "a.log": "TODO\n",
        "keep.log": "TODO: kept\n",
    }.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    (workspace / "data.bin").write_bytes(b"TODO\0TODO")
    return workspace


def found(text: str) -> set[str]:
    return {line.split(": ")[0] for line in text.splitlines()}


def test_matches_have_file_and_line_and_ignored_files_are_left_out(call, project):
    text = call("search", pattern="TODO").text
    assert found(text) == {"main.py:2", "src/deep/util.py:2", "src/notes.md:1", "keep.log:1"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"glob": "*.py"}, {"main.py:2", "src/deep/util.py:2"}),
        ({"glob": "src/**/*.py"}, {"src/deep/util.py:2"}),
        ({"path": "src"}, {"src/deep/util.py:2", "src/notes.md:1"}),
        ({"path": "src", "glob": "*.md"}, {"src/notes.md:1"}),
        ({"path": "main.py"}, {"main.py:2"}),
        ({"path": "build"}, {"build/out.py:1"}),
        ({"glob": "*.rs"}, {"[no match]"}),
    ],
)
def test_path_and_glob_narrow_it(call, project, arguments, expected):
    assert found(call("search", pattern="TODO", **arguments).text) == expected


def test_patterns_are_regular_expressions(call, project):
    assert found(call("search", pattern=r"^#\s+TODO: (one|two)$").text) == {
        "main.py:2",
        "src/deep/util.py:2",
    }
    bad = call("search", pattern="main(")
    assert bad.outcome == "error"
    assert "no regular expression" in bad.text


def test_a_pattern_that_never_ends_is_ended(call, project, monkeypatch):
    monkeypatch.setattr("minicpm5_mac.tools.search.WALL_SECONDS", 1.0)
    (project / "trap.txt").write_text("a" * 60 + "!\n")
    result = call("search", pattern=r"(a+)+$", path="trap.txt")
    assert result.outcome == "limit"
    assert "time limit" in result.text


def test_many_matches_come_in_pages_and_long_lines_around_the_match(call, workspace):
    (workspace / "many.txt").write_text("hit\n" * 250)
    text = call("search", pattern="hit").text
    assert text.endswith("[matches 1-100 of 250; the next page: start=101]")
    assert "[matches 201-250 of 250; the end]" in call("search", pattern="hit", start=201).text
    (workspace / "many.txt").write_text("x" * 100_000 + "needle" + "y" * 100_000)
    text = call("search", pattern="needle").text
    assert "needle" in text
    assert len(text) < 400


def test_links_out_of_the_workspace_are_not_followed(call, workspace):
    (workspace / "up").symlink_to("..")
    (workspace / "passwd").symlink_to("/etc/passwd")
    assert call("search", pattern="root").text == "[no match]"
    assert "outside of" in call("search", pattern="root", path="/etc").text
    assert "outside of" in call("search", pattern="root", path="passwd").text


# Patterns ---------------------------------------------------------------------------------------

GITIGNORES = [
    "*.o", "/build", "build/", "docs/**/x.txt", "**/cache", "a/**", "!keep.o\n*.o", "*.o\n!keep.o",
    "foo/bar", "/*.c", "[a-c].txt", "[!a].txt", "?.md", "\\#odd", "# comment", "\\!bang", "a b",
    "**/deep/*.o", "x/", "*", "*\n!*/\n!*.md",
]  # fmt: skip
PATHS = [
    "main.o", "keep.o", "build", "build/x", "src/build", "src/build/y", "docs/x.txt",
    "docs/a/b/x.txt", "cache", "a/cache", "a/b/c.txt", "foo/bar", "z/foo/bar", "top.c", "sub/top.c",
    "b.txt", "d.txt", "q.md", "long.md", "#odd", "!bang", "a b", "k/deep/m.o", "x", "y/x/z",
]  # fmt: skip


@pytest.mark.parametrize("text", GITIGNORES)
def test_gitignore_lines_mean_what_git_says(tmp_path, text):
    if shutil.which("git") is None:
        pytest.skip("needs git: sudo apt install git")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(text + "\n")
    for path in PATHS:
        asked = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ignore", "-q", "--no-index", path],
            capture_output=True,
        )
        assert ignored(text, path) == (asked.returncode == 0), (text, path)


def ignored(text: str, path: str) -> bool:
    """As the search's walk sees it: an ignored folder is not entered."""
    levels = Ignored().below("", text)
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        if levels.covers("/".join(parts[:end]), is_folder=end < len(parts)):
            return True
    return False


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a/b.py", True), ("*.py", "b.pyc", False), ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/c/b.py", False), ("a/**/*.py", "a/c/d/b.py", True),
        ("**/*.py", "b.py", True), ("/b.py", "b.py", True), ("b.?", "x/b.c", True),
        ("[ab].py", "c.py", False), ("a+b", "a+b", True), ("a+b", "aab", False),
    ],
)  # fmt: skip
def test_globs(glob, path, expected):
    assert glob_matches(glob, path) is expected
