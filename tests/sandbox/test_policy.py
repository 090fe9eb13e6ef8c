"""A policy is valid once it exists: what cannot be confined is refused, with what to do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import policy as policy_module
from minicpm5_mac.sandbox.policy import Limits, Policy


def refusal(*arguments, **keywords) -> Failure:
    with pytest.raises(Failure) as caught:
        Policy(*arguments, **keywords)
    assert caught.value.advice
    assert caught.value.exit_code == 2
    return caught.value


def test_root_is_no_workspace():
    assert "/" in refusal(Path("/")).text


def test_home_and_what_contains_it_are_refused(tmp_path, monkeypatch):
    home = tmp_path / "users" / "me"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, home.parent, tmp_path):
        assert "home folder" in refusal(folder).text
        assert "home folder" in refusal(home / "project", read=(folder,)).text
        assert "home folder" in refusal(home / "project", write=(folder,)).text
    assert Policy(home / "project").workspace == home / "project"


def test_the_real_home_counts_whatever_the_environment_says(tmp_path, monkeypatch):
    import pwd

    home = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    if not home.is_dir() or home == Path("/"):
        pytest.skip("this user has no home folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "home folder" in refusal(home).text


def test_home_behind_a_link_is_home(tmp_path, monkeypatch):
    home = tmp_path / "me"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    assert "home folder" in refusal(tmp_path / "link").text


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\x7f", "\ta"])
def test_control_characters_are_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    assert "control character" in refusal(tmp_path / name).text
    (tmp_path / "link").symlink_to(tmp_path / name)
    assert "control character" in refusal(tmp_path / "link").text


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    assert "UTF-8" in refusal(Path(os.fsdecode(folder))).text


def test_paths_beyond_what_a_profile_can_say_are_refused(tmp_path):
    deep = tmp_path
    while len(os.fsencode(deep)) <= 900:
        deep = deep / ("d" * 100)
    deep.mkdir(parents=True)
    assert "900" in refusal(deep).advice


def test_a_missing_folder_and_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "missing", tmp_path / "file"):
        assert "not a folder" in refusal(path).text


@pytest.mark.parametrize("folder", ["/proc", "/dev", "/sys", "/proc/self"])
def test_views_of_the_kernel_are_never_granted(tmp_path, folder):
    if not Path(folder).exists():
        pytest.skip(f"this system has no {folder}")
    refusal(tmp_path, read=(Path(folder),))
    refusal(Path(folder))


@pytest.mark.parametrize("folder", ["/usr", "/etc", "/usr/share"])
def test_system_folders_are_never_written(tmp_path, folder):
    refusal(Path(folder))
    refusal(tmp_path, write=(Path(folder),))


def test_the_program_itself_is_never_written(tmp_path):
    for folder in (Path(sys.prefix), Path(policy_module.__file__).parent):
        assert "program" in refusal(folder).text or "system" in refusal(folder).text


def test_the_temporary_folder_is_no_workspace(tmp_path, monkeypatch):
    """A run could write what another run keeps there."""
    (tmp_path / "ws" / "tmp").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "ws" / "tmp"))
    assert "temporary folder" in refusal(tmp_path / "ws").text
    assert Policy(tmp_path / "ws", writable=False).writable is False


def test_the_programs_own_data_is_never_written(tmp_path, monkeypatch):
    """A tool that can write the cache could write itself a passing verdict."""
    home = tmp_path / "portable"
    (home / "cache" / "sandbox").mkdir(parents=True)
    (tmp_path / "ws").mkdir()
    monkeypatch.setenv("MINICPM5_MAC_HOME", str(home))
    for folder in (tmp_path, home, home / "cache", home / "cache" / "sandbox"):
        assert "own data" in refusal(folder).text
        assert "own data" in refusal(tmp_path / "ws", write=(folder,)).text


@pytest.mark.parametrize("name", [".git", ".GIT", ".vscode", ".vſcode", ".husKy", "\u200c.git"])
def test_a_workspace_inside_a_protected_folder_is_refused(tmp_path, name):
    inside = tmp_path / name / "x"
    inside.mkdir(parents=True)
    assert "never write" in refusal(inside).text
    assert Policy(tmp_path, read=(inside,)).read == ()


def test_an_interpreter_in_the_workspace_is_pinned(tmp_path, monkeypatch):
    environment = tmp_path / "sub" / "venv"
    environment.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert Policy(tmp_path).pinned() == (environment,)
    assert Policy(tmp_path, writable=False).pinned() == ()


def test_grants_are_resolved_and_covered_ones_dropped(tmp_path):
    for name in ("ws/inner", "a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    policy = Policy(
        tmp_path / "ws",
        read=(tmp_path / "link", tmp_path / "a" / "b", tmp_path / "ws" / "inner"),
        write=(tmp_path / "ws" / "inner", tmp_path / "c"),
    )
    assert policy.read == (tmp_path / "a",)
    assert policy.write == (tmp_path / "c",)
    assert policy.write_roots == (tmp_path / "ws", tmp_path / "c")


def test_a_read_only_policy_reads_its_workspace(tmp_path):
    policy = Policy(tmp_path, writable=False)
    assert policy.write_roots == ()
    assert policy.read_roots == (tmp_path,)


@pytest.mark.parametrize("seconds", [0, -1, 601, float("inf"), float("nan")])
def test_the_time_limit_has_bounds(seconds):
    with pytest.raises(Failure, match="time limit"):
        Limits(wall_seconds=seconds)
