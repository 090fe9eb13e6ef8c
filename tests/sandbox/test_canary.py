"""The canary: its probes pass in the production sandbox, and each fails without its defence."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from defences import (
    edited,
    everything_around,
    host_processes,
    identity,
    instead,
    leaking_environment,
    no_filter,
    open_input,
    without,
)

from minicpm5_mac.sandbox import canary, linux, wrapping
from minicpm5_mac.sandbox.bench import Shape
from minicpm5_mac.sandbox.canary import examine, result_of, verdict
from minicpm5_mac.sandbox.policy import Limits, Policy
from minicpm5_mac.sandbox.probes import ALL_PROBES, probes
from minicpm5_mac.sandbox.wrapping import production_wrapper

pytestmark = pytest.mark.usefixtures("sandbox")
SHAPE = Shape(reads=True, writes=True, limits=Limits())
PROBES = {probe.number: probe for probe in ALL_PROBES}


def test_there_are_24_probes_and_22_on_linux():
    assert [probe.number for probe in probes("darwin")] == list(range(1, 25))
    assert [p.number for p in probes("linux")] == [n for n in range(1, 25) if n not in (22, 23)]


def test_all_probes_are_right_through_the_production_wrapper():
    found = examine(SHAPE, production_wrapper())
    assert {r.number: r.seen for r in found.results if not r.ok} == {}
    assert len(found.results) == 22
    assert found.ok


# Per probe: its defence taken away, and what is then seen.
WITHOUT_DEFENCE = {
    (1, "no system folder"): (edited(without("--ro-bind", "/usr", "/usr")), "did not start"),
    (2, "workspace read-only"): (
        edited(instead(("--bind", "WS", "WS"), ("--ro-bind", "WS", "WS"))),
        "EROFS",
    ),
    (3, "root writable"): (edited(without("--remount-ro", "/")), "ok"),
    (4, "the parent writable"): (edited(everything_around), "ok"),
    (5, "the parent readable"): (
        edited(instead(("--bind", "WS", "WS"), ("--ro-bind", "UP", "UP", "--bind", "WS", "WS"))),
        "secret",
    ),
    (6, "the parent writable"): (edited(everything_around), "ok"),
    (7, "the parent writable"): (edited(everything_around), "ok"),
    (8, "the parent writable"): (edited(everything_around), "moved"),
    (9, ".git not pinned"): (edited(without("--ro-bind", "WS/.git", "WS/.git")), "ok"),
    (10, ".vscode not pinned"): (edited(without("--ro-bind", "WS/.vscode", "WS/.vscode")), "ok"),
    (11, "the host's network"): (edited(without("--unshare-net")), "accepted"),
    (12, "the host's network"): (edited(without("--unshare-net")), "arrived"),
    (13, "no filter"): (edited(no_filter), "accepted"),
    (14, "the host's processes"): (edited(*host_processes), "ok"),
    (15, "no filter"): (edited(no_filter), "ok"),
    (16, "environment not cleared"): (leaking_environment, "present"),
    (17, "no filter"): (edited(no_filter), "ENXIO, "),
    (18, "the host's processes"): (
        edited(*host_processes, without("--die-with-parent")),
        "written after the end",
    ),
    (20, "an open standard input"): (open_input, "timeout"),
    (21, "no filter, namespaces allowed"): (edited(no_filter, without("--disable-userns")), "ok"),
    (24, "no filter"): (edited(no_filter), "Seccomp=0"),
    (24, "no filter for modes"): (edited(no_filter), "set-user-ID: ok"),
    (24, "/proc writable"): (edited(without("--remount-ro", "/proc")), "/proc: ok, "),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHOUT_DEFENCE, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_probe_fails_without_its_defence(case):
    wrapper, sight = WITHOUT_DEFENCE[case]
    result = result_of(PROBES[case[0]], SHAPE, wrapper)
    assert not result.ok
    assert sight in result.seen


def test_the_flood_probe_fails_without_an_output_limit():
    limitless = dataclasses.replace(Limits(), output_bytes=1 << 50, wall_seconds=1.0)
    result = result_of(PROBES[19], Shape(False, False, limitless), production_wrapper())
    assert not result.ok
    assert "timeout" in result.seen


@pytest.mark.skipif(os.getuid() != 0, reason="only root has capabilities to drop")
def test_root_without_dropped_capabilities_is_noticed():
    as_root = [
        without("--disable-userns"),
        without("--unshare-user"),
        without("--uid", "1000"),
        without("--gid", "1000"),
    ]
    dropped = result_of(PROBES[24], SHAPE, edited(*as_root))
    assert dropped.ok, dropped.seen
    result = result_of(PROBES[24], SHAPE, edited(*as_root, without("--cap-drop", "ALL")))
    assert not result.ok
    assert "CapEff=0000000000000000" not in result.seen


# What any process on this machine may do, confined or not.
POSITIVE = {1, 19, 20}


def test_every_probe_but_the_controls_fails_without_a_sandbox():
    found = examine(SHAPE, identity)
    assert {result.number for result in found.results if result.ok} == POSITIVE
    assert not found.ok
    assert "probes went wrong" in found.reason


def test_every_probe_has_a_case_here():
    assert {number for number, _ in WITHOUT_DEFENCE} | {19} == {p.number for p in probes("linux")}


def counting(monkeypatch, outcome):
    calls = []

    def fake(shape, wrapper):
        calls.append(shape)
        return outcome

    monkeypatch.setattr(canary, "examine", fake)
    return calls


def test_a_pass_is_remembered_for_the_shape_not_the_folder(monkeypatch, workspace, tmp_path):
    calls = counting(monkeypatch, canary.Verdict(True, "", ()))
    other = tmp_path / "other"
    other.mkdir()
    assert verdict(Policy(workspace)).ok
    assert verdict(Policy(other)).ok
    assert verdict(Policy(other, limits=Limits(wall_seconds=5))).ok
    assert len(calls) == 1
    assert verdict(Policy(workspace, read=(other,))).ok
    assert verdict(Policy(workspace, limits=Limits(processes=5))).ok
    assert len(calls) == 3


def test_a_pass_is_forgotten_with_the_system_the_version_and_the_code(monkeypatch, workspace):
    calls = counting(monkeypatch, canary.Verdict(True, "", ()))
    verdict(Policy(workspace))
    monkeypatch.setattr(canary, "__version__", "another")
    verdict(Policy(workspace))
    monkeypatch.setattr(canary, "_code_digest", lambda: "another")
    verdict(Policy(workspace))
    monkeypatch.setattr(os, "uname", lambda: ("Linux", "host", "another", "build", "x86_64"))
    verdict(Policy(workspace))
    assert len(calls) == 4


def test_a_failure_is_not_remembered_and_names_its_reason(monkeypatch, workspace):
    calls = counting(monkeypatch, canary.Verdict(False, "probe 3", ()))
    for _ in range(2):
        found = verdict(Policy(workspace))
        assert (found.ok, found.reason) == (False, "probe 3")
    assert len(calls) == 2


def test_without_a_back_end_there_are_no_tools(monkeypatch, workspace):
    monkeypatch.setattr(linux, "BWRAP_PATH", "/nowhere")
    found = verdict(Policy(workspace))
    assert not found.ok
    assert "bubblewrap" in found.reason


def test_the_first_back_end_that_passes_is_used_from_then_on(monkeypatch, workspace):
    def first(policy, command, tmp):
        raise AssertionError("not run here")

    both = {"first": first, "second": linux.wrap}
    for module in (canary, wrapping):
        monkeypatch.setattr(module, "back_ends", lambda: both)
    passes = canary.Verdict(True, "", ())
    fails = canary.Verdict(False, "the first fails", ())
    outcomes = {first: fails, linux.wrap: passes}
    monkeypatch.setattr(canary, "examine", lambda shape, wrapper: outcomes[wrapper])
    assert production_wrapper() is first
    assert verdict(Policy(workspace)).ok
    assert production_wrapper() is linux.wrap
    wrapping.choose_back_end("first")
    assert verdict(Policy(workspace)).ok
    assert production_wrapper() is linux.wrap
    outcomes[linux.wrap] = canary.Verdict(False, "so does the second", ())
    found = verdict(Policy(workspace, limits=Limits(processes=3)))
    assert (found.ok, found.reason) == (False, "the first fails")


def test_another_system_has_no_sandbox(monkeypatch, workspace):
    monkeypatch.setattr(wrapping.sys, "platform", "sunos5")
    found = verdict(Policy(workspace))
    assert not found.ok
    assert "sunos5" in found.reason


def test_a_crashing_probe_is_a_wrong_result():
    def crash(_):
        raise RuntimeError("boom")

    probe = dataclasses.replace(PROBES[3], run=crash)
    result = result_of(probe, SHAPE, production_wrapper())
    assert (result.ok, result.seen) == (False, "RuntimeError: boom")


def test_the_canary_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result_of(PROBES[9], SHAPE, production_wrapper())
    assert [path for path in Path(tmp_path).iterdir() if path.name.startswith("minicpm5")] == []
