"""`sandbox run`, `sandbox profile` and `doctor`, as a user runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minicpm5_mac.cli import doctor, main

REPOSITORY = Path(__file__).parents[2]
bubblewrap = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bwrap") is None,
    reason="needs bubblewrap: sudo apt install bubblewrap",
)


@pytest.fixture
def minicpm5_mac(tmp_path):
    """Run the command in a workspace of its own; returns the finished process."""
    (tmp_path / "ws").mkdir()

    def call(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {
            **os.environ,
            "MINICPM5_MAC_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(REPOSITORY),
        }
        return subprocess.run(
            [sys.executable, "-m", "minicpm5_mac", *arguments],
            cwd=tmp_path / "ws",
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return call


@bubblewrap
def test_output_and_status_are_passed_on(minicpm5_mac):
    done = minicpm5_mac(
        "sandbox", "run", "--", "sh", "-c", "printf 'a\\377\\033[m'; echo b >&2; exit 7"
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"a\xff\x1b[m", b"b\n", 7)


@bubblewrap
def test_options_of_the_command_are_its_own(minicpm5_mac):
    done = minicpm5_mac("sandbox", "run", "--", "echo", "--read", "-x", "--", "y")
    assert done.stdout == b"--read -x -- y\n"


@bubblewrap
def test_a_time_limit_ends_with_124_and_says_so(minicpm5_mac):
    done = minicpm5_mac("sandbox", "run", "--timeout", "0.5", "--", "sleep", "60")
    assert done.returncode == 124
    assert b"timeout" in done.stderr


@bubblewrap
def test_the_workspace_is_this_folder_or_the_one_named(minicpm5_mac, tmp_path):
    (tmp_path / "other").mkdir()
    assert minicpm5_mac("sandbox", "run", "--", "pwd").stdout.decode().strip() == str(
        tmp_path / "ws"
    )
    named = minicpm5_mac("sandbox", "run", "--workspace", "../other", "--", "pwd")
    assert named.stdout.decode().strip() == str(tmp_path / "other")


@bubblewrap
def test_grants_are_what_is_named_and_no_more(minicpm5_mac, tmp_path):
    for name in ("r", "w", "n"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "there").write_text(name)
    script = "cat ../r/there ../w/there ../n/there; touch ../r/new ../w/new ../n/new"
    minicpm5_mac_run = (
        "sandbox",
        "run",
        "--read",
        "../r",
        "--write",
        "../w",
        "--",
        "sh",
        "-c",
        script,
    )
    assert minicpm5_mac(*minicpm5_mac_run).stdout == b"rw"
    assert [n for n in ("r", "w", "n") if (tmp_path / n / "new").exists()] == ["w"]


@bubblewrap
def test_a_terminal_gets_no_control_sequences(tmp_path):
    """The one place where output is changed: what a program prints could steer the terminal."""
    main_end, terminal = os.openpty()
    (tmp_path / "ws").mkdir()
    environment = {**os.environ, "MINICPM5_MAC_HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    command = ("sandbox", "run", "--", "printf", r"a\033]52;c;aGk=\ab\n")
    subprocess.run(
        [sys.executable, "-m", "minicpm5_mac", *command],
        cwd=tmp_path / "ws",
        env=environment,
        stdout=terminal,
        check=True,
    )
    assert os.read(main_end, 100) == b"ab\r\n"
    os.close(main_end)
    os.close(terminal)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--workspace", "/", "--", "true"), "cannot be /"),
        (("run", "--workspace", "missing", "--", "true"), "not a folder"),
        (("run", "--read", "/proc", "--", "true"), "/proc"),
        (("run", "--timeout", "1000", "--", "true"), "at most 600"),
        (("run", "--timeout", "-1", "--", "true"), "time limit"),
        (("run", "--timeout", "soon", "--", "true"), "invalid float"),
        (("run",), "CMD"),
        (("run", "--no-sandbox", "--", "true"), "unrecognized"),
        (("profile", "--write", "/usr"), "belongs to the system"),
    ],
)
def test_wrong_usage_says_what_to_do(minicpm5_mac, arguments, said):
    done = minicpm5_mac("sandbox", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_the_profile_is_printed_for_the_policy(minicpm5_mac, tmp_path):
    (tmp_path / "r").mkdir()
    done = minicpm5_mac("sandbox", "profile", "--read", "../r")
    text = done.stdout.decode()
    assert text.startswith("(version 1)\n(deny default)\n")
    assert f'(subpath "{tmp_path}/r")' in text
    assert f'(require-all (subpath "{tmp_path}/ws")' in text


def rows(*given: doctor.Row):
    def check():
        yield from given

    return check


def run_doctor(monkeypatch, capsys, *checks) -> tuple[int, list[str]]:
    monkeypatch.setattr(doctor, "CHECKS", checks)
    status = main.build_parser().parse_args(["doctor"])
    return doctor.run(status), capsys.readouterr().out.splitlines()


def test_doctor_prints_expected_and_seen(monkeypatch, capsys):
    good = doctor.Row("a", "EPERM", "EPERM", True)
    bad = doctor.Row("b", "EPERM", "ok", False)
    assert run_doctor(monkeypatch, capsys, rows(good))[0] == 0
    status, lines = run_doctor(monkeypatch, capsys, rows(good, bad))
    assert status == 1
    assert lines == ["ok     a: EPERM", "NOT OK b: expected EPERM, seen ok", "1 not ok"]


def test_a_check_that_breaks_is_a_row_and_the_others_run(monkeypatch, capsys):
    def broken_thing():
        raise RuntimeError("boom")
        yield

    after = rows(doctor.Row("after", "x", "x", True))
    status, lines = run_doctor(monkeypatch, capsys, broken_thing, after)
    assert status == 1
    assert lines[0] == "NOT OK broken thing: expected works, seen RuntimeError: boom"
    assert lines[1].startswith("ok     after")


@bubblewrap
def test_doctor_runs_the_canary(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MINICPM5_MAC_HOME", str(tmp_path))
    status, lines = run_doctor(monkeypatch, capsys, doctor.sandbox)
    assert [line for line in lines if line.startswith("NOT OK")] == []
    assert status == 0
    assert "22 of 22" in lines[-2]


@bubblewrap
def test_cost_compares_the_same_read(minicpm5_mac):
    done = minicpm5_mac("sandbox", "cost", "--calls", "2")
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["sandboxed", "in-process"]
    assert minicpm5_mac("sandbox", "cost", "--calls", "0").returncode == 2
