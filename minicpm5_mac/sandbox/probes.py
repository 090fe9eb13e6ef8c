"""The canary's probes: what is tried, what must be seen, and how the host checks it.

Numbers, attempts and expected outcomes are those of the design note (sandbox.md, section 3). A
probe is right only when the outcome inside is the expected one *and* the host finds no effect.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from minicpm5_mac.sandbox.bench import ATTEMPTS, UNTOUCHED, Bench
from minicpm5_mac.sandbox.process import Reason
from minicpm5_mac.sandbox.worker_call import (
    python_command,
    shell_command,
)

MARKER_VARIABLE = "MINICPM5_MAC_CANARY"
_MAC = sys.platform == "darwin"


@dataclass(frozen=True)
class Seen:
    """What came of a probe, in words, and whether it is what must come."""

    text: str
    ok: bool


@dataclass(frozen=True)
class Probe:
    """One probe. expected: per system, in words for the user."""

    number: int
    title: str
    expected: dict[str, str]
    run: Callable[[Bench], Seen]


def _seen(outcomes: Sequence[object], *expected: Sequence[object], effect: str = "") -> Seen:
    """Outcomes against what each may be; `effect`, when not empty, is what the host found."""
    text = ", ".join(str(outcome) for outcome in outcomes)
    fits = all(outcome in choices for outcome, choices in zip(outcomes, expected, strict=True))
    return Seen(f"{text}; host: {effect}" if effect else text, fits and not effect)


def _changed(bench: Bench) -> str:
    now = bench.outside.read_text() if bench.outside.exists() else "gone"
    return "" if now == UNTOUCHED else f"the outside file is {now!r}"


def _runs(bench: Bench) -> Seen:
    shell = bench.command(shell_command("echo ok; cat <<END\nhere\nEND"))
    python = bench.command(python_command("print(1)"))
    printed = [shell.stdout.text().split(), python.stdout.text().split()]
    if printed == [["ok", "here"], ["1"]]:
        return Seen("ok", True)
    return Seen(f"shell: {shell.stdout.text()!r}, python: {python.stdout.text()!r}", False)


def _works_in_reach(bench: Bench) -> Seen:
    new = bench.workspace / "new.txt"
    expected: list[Sequence[object]] = [("ok",), ("text",), ("ok",), ("ok",)]
    steps: list[Sequence[object]] = [
        ("write", new, "text"),
        ("read", new),
        ("unlink", new),
        ("write_in_tmp", "t", "text"),
    ]
    if bench.shape.reads:
        there = bench.granted_read / "there.txt"
        steps += [("read", there), ("write", there, "no")]
        expected += [("there",), _REFUSED]
    if bench.shape.writes:
        steps.append(("write", bench.granted_write / "new.txt", "text"))
        expected.append(("ok",))
    seen = _seen(bench.attempt(*steps), *expected)
    read_only = replace(bench.policy, writable=False)
    refused = bench.attempt(
        ("write", new, "text"), ("read", bench.workspace / "mine.txt"), policy=read_only
    )
    refusal = _seen(refused, _REFUSED, ("mine",), effect="written" if new.exists() else "")
    return Seen(f"{seen.text}; read-only: {refusal.text}", seen.ok and refusal.ok)


def _creates_beside(bench: Bench) -> Seen:
    outcomes = bench.attempt(("write", bench.beside, "x"))
    return _seen(outcomes, _REFUSED, effect="created" if bench.beside.exists() else "")


def _overwrites_outside(bench: Bench) -> Seen:
    outcomes = bench.attempt(("write", bench.outside, "x"))
    return _seen(outcomes, _REFUSED, effect=_changed(bench))


def _reads_secret(bench: Bench) -> Seen:
    outcomes = bench.attempt(("read", bench.secret), ("listdir", bench.secret.parent))
    return _seen(outcomes, _HIDDEN, _HIDDEN)


def _follows_symlink(bench: Bench) -> Seen:
    made_outside = bench.workspace / "link-made-by-the-host"
    made_outside.symlink_to(bench.outside)
    outcomes = bench.attempt(
        ("write", made_outside, "x"),
        ("symlink_and_write", bench.outside, bench.workspace / "link-made-inside", "x"),
    )
    return _seen(outcomes, _REFUSED, _REFUSED, effect=_changed(bench))


def _hardlinks(bench: Bench) -> Seen:
    outcomes = bench.attempt(
        ("link_and_write", bench.outside, bench.workspace / "hard", "x"),
        ("link", "/usr/bin/env", bench.workspace / "hard-2"),
    )
    may = ("EPERM", "EXDEV") if _MAC else ("ENOENT", "EXDEV")
    return _seen(outcomes, may, ("EPERM", "EXDEV"), effect=_changed(bench))


def _renames_out(bench: Bench) -> Seen:
    target = bench.workspace.parent / "moved.txt"
    outcomes = bench.attempt(("rename", bench.workspace / "mine.txt", target))
    moved = target.exists() or not (bench.workspace / "mine.txt").exists()
    return _seen(outcomes, ("EPERM",) if _MAC else ("EXDEV",), effect="moved" if moved else "")


def _writes_git(bench: Bench) -> Seen:
    hook = bench.workspace / ".git" / "hooks" / "x"
    outcomes = bench.attempt(
        ("write", hook, "x"), ("rename", bench.workspace / ".git", bench.workspace / "g")
    )
    changed = hook.exists() or (bench.workspace / "g").exists()
    busy = ("EPERM",) if _MAC else ("EBUSY",)
    return _seen(outcomes, _REFUSED, busy, effect="changed" if changed else "")


def _creates_protected(bench: Bench) -> Seen:
    absent = [name for name in bench.policy.protected if name != ".git"]
    steps = [("write_in_new_folder", bench.workspace / name / "t", "x") for name in absent]
    outcomes = bench.attempt(*steps)
    upper = bench.attempt(("write_in_new_folder", bench.workspace / ".VSCODE" / "t", "x"))
    wrong = [n for n, o in zip(absent, outcomes, strict=True) if o not in _REFUSED]
    left = [name for name in absent if (bench.workspace / name).exists()]
    fits = upper[0] in (_REFUSED if _MAC else ("ok",))
    text = f"{outcomes[absent.index('.vscode')]}; .VSCODE: {upper[0]}"
    text += f"; written: {', '.join(wrong)}" if wrong else ""
    text += f"; on the host: {', '.join(left)}" if left else ""
    return Seen(text, fits and not wrong and not left)


def _connects_tcp(bench: Bench) -> Seen:
    with socket.create_server(("127.0.0.1", 0)) as server:
        outcomes = bench.attempt(("connect_tcp", server.getsockname()[1]))
        arrived = bool(select.select([server], [], [], 0.05)[0])
    may = ("EPERM",) if _MAC else ("ECONNREFUSED",)
    return _seen(outcomes, may, effect="accepted" if arrived else "")


def _sends_udp(bench: Bench) -> Seen:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        outcomes = bench.attempt(("send_udp", receiver.getsockname()[1]))
        arrived = bool(select.select([receiver], [], [], 0.2)[0])
    # In a network namespace of its own sending succeeds, to nobody: only the arrival counts.
    seen = _seen(outcomes, ("EPERM",) if _MAC else ("ok", "EPERM", "ENETUNREACH"))
    return Seen("arrived" if arrived else f"nothing arrives ({seen.text})", seen.ok and not arrived)


def _connects_unix(bench: Bench) -> Seen:
    # In the workspace, so that its path is in reach and only the refusal of sockets is in the way.
    path = bench.workspace / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        outcomes = bench.attempt(("connect_unix", path))
        arrived = bool(select.select([server], [], [], 0.05)[0])
    return _seen(outcomes, ("EPERM",), effect="accepted" if arrived else "")


def _signals_app(bench: Bench) -> Seen:
    return _seen(bench.attempt(("signal_process", os.getpid())), ("EPERM",) if _MAC else ("ESRCH",))


def _traces_app(bench: Bench) -> Seen:
    # A child stands in for the app: a debugger that does attach stops what it attached to.
    with subprocess.Popen(("/bin/sleep", "60")) as stand_in:
        try:
            if _MAC:
                steps = (("trace", stand_in.pid), ("task_port", stand_in.pid))
            else:
                steps = (("trace_self",), ("trace", stand_in.pid))
            return _seen(bench.attempt(*steps), ("EPERM",), ("EPERM",))
        finally:
            stand_in.kill()


def _reads_environment(bench: Bench) -> Seen:
    marker = uuid.uuid4().hex
    os.environ[MARKER_VARIABLE] = marker
    try:
        outcomes = bench.attempt(("environment_holds", marker))
    finally:
        del os.environ[MARKER_VARIABLE]
    words = {False: "absent", True: "present"}
    return _seen([words.get(outcome, outcome) for outcome in outcomes], ("absent",))


def _reaches_terminal(bench: Bench) -> Seen:
    outcomes = bench.attempt(("open_terminal",), ("inject_into_terminal",))
    return _seen(outcomes, ("EPERM", "ENXIO") if _MAC else ("ENXIO",), ("EPERM",))


def _survives(bench: Bench) -> Seen:
    file = bench.workspace / "written"
    code = (
        f"import sys, time; sys.path.insert(0, {str(ATTEMPTS.parent)!r}); import attempts; "
        f"attempts.leave_writer({str(file)!r}); time.sleep(60)"
    )
    ended = bench.command(python_command(code), wall_seconds=1.0)
    size = file.stat().st_size if file.exists() else 0
    time.sleep(2.0)
    grown = (file.stat().st_size if file.exists() else 0) - size
    if size == 0:
        return Seen("the writer never wrote", False)
    if ended.reason is not Reason.TIMEOUT or grown:
        return Seen(f"{ended.reason}, {grown} bytes written after the end", False)
    return Seen("dead", True)


def _floods(bench: Bench) -> Seen:
    ended = bench.command(("/usr/bin/yes",))
    limits = bench.policy.limits
    kept = len(ended.stdout.head) + len(ended.stdout.tail)
    bounded = kept <= limits.output_head_bytes + limits.output_tail_bytes
    if ended.stdout.spill is not None:
        ended.stdout.spill.unlink()
    text = f"{ended.reason} after {ended.stdout.total} bytes, {kept} kept"
    # One chunk may be on the way when the limit is passed, and the pipe still holds one.
    passed = limits.output_bytes < ended.stdout.total <= limits.output_bytes + (4 << 20)
    return Seen(text, ended.reason is Reason.OUTPUT and bounded and passed)


def _waits_for_input(bench: Bench) -> Seen:
    ended = bench.command(("/bin/cat",), wall_seconds=3.0)
    ok = ended.reason is Reason.EXIT and ended.status == 0
    return Seen("end of file" if ok else f"{ended.reason}, status {ended.status}", ok)


def _escalates(bench: Bench) -> Seen:
    if _MAC:
        nested = ("/usr/bin/sandbox-exec", "-p", "(version 1)(allow default)", "/usr/bin/true")
        status = bench.command(nested).status
        return Seen("denied" if status else "nested sandbox-exec worked", status != 0)
    outcomes = bench.attempt(("mount_over", bench.workspace / "empty"), ("new_user_namespace",))
    return _seen(outcomes, ("EPERM",), ("EPERM",))


def _reads_keychain(bench: Bench) -> Seen:
    secret, service = uuid.uuid4().hex, f"minicpm5-mac-canary-{uuid.uuid4().hex}"
    security, name = "/usr/bin/security", ("-a", "minicpm5-mac", "-s", service)
    find = (security, "find-generic-password", *name, "-w")
    _host(security, "add-generic-password", *name, "-w", secret)
    try:
        control = _host(*find)
        inside = bench.command(find)
    finally:
        _host(security, "delete-generic-password", *name)
    if secret not in control.stdout.decode(errors="replace"):
        return Seen("the control failed: not even unsandboxed was the item found", False)
    leaked = inside.status == 0 or secret in inside.stdout.text()
    return Seen("found" if leaked else "not found", not leaked)


def _reaches_desktop(bench: Bench) -> Seen:
    clipboard = _host("/usr/bin/pbpaste").stdout.strip()
    pasted = bench.command(("/usr/bin/pbpaste",))
    wrong = []
    if clipboard and clipboard in pasted.stdout.head:
        wrong.append("pbpaste")
    running = _host("/usr/bin/pgrep", "-x", "Calculator").returncode == 0
    for command in (
        ("/usr/bin/open", "-g", "-a", "Calculator"),
        ("/usr/bin/osascript", "-e", 'tell application "Finder" to get name of home'),
        ("/bin/launchctl", "print", f"gui/{os.getuid()}"),
    ):
        if bench.command(command).status == 0:
            wrong.append(" ".join(command[:1]))
    if not running and _host("/usr/bin/pgrep", "-x", "Calculator").returncode == 0:
        wrong.append("an application started")
    return Seen(f"worked: {', '.join(wrong)}" if wrong else "all fail", not wrong)


def _is_confined(bench: Bench) -> Seen:
    if _MAC:
        outcomes = bench.attempt(("in_a_sandbox",))
        return _seen(outcomes, (True,))
    status, own, kernel, set_id = bench.attempt(
        ("read", "/proc/self/status"),
        ("open_for_writing", "/proc/self/comm"),
        ("open_for_writing", "/proc/sys/kernel/core_pattern"),
        ("set_user_id", bench.workspace / "set-user-id"),
    )
    fields = dict(line.split(":\t", 1) for line in str(status).splitlines() if ":\t" in line)
    values = [fields.get(name, "?").strip() for name in ("CapEff", "NoNewPrivs", "Seccomp")]
    text = "CapEff={} NoNewPrivs={} Seccomp={}".format(*values)
    # Who is not root outside is refused by the files' own rights before the mount's.
    kernel = "EROFS" if kernel == "EACCES" else kernel
    text += f"; /proc: {own}, {kernel}; set-user-ID: {set_id}"
    refused = ["EROFS", "EROFS", "EPERM"]
    return Seen(text, [*values, own, kernel, set_id] == ["0" * 16, "1", "2", *refused])


def _host(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=20, check=False)


_REFUSED = ("EPERM",) if _MAC else ("EROFS",)
_HIDDEN = ("EPERM",) if _MAC else ("ENOENT",)


def _both(text: str) -> dict[str, str]:
    return {"linux": text, "darwin": text}


def _per(linux: str, darwin: str) -> dict[str, str]:
    return {"linux": linux, "darwin": darwin}


ALL_PROBES = (
    Probe(1, "shell, python and a here-document run", _both("ok"), _runs),
    Probe(2, "workspace, run folder and grants work", _both("ok"), _works_in_reach),
    Probe(3, "create a file beside the workspace", _per("EROFS", "EPERM"), _creates_beside),
    Probe(4, "overwrite a file outside", _per("EROFS", "EPERM"), _overwrites_outside),
    Probe(5, "read ~/.ssh, list it", _per("ENOENT", "EPERM"), _reads_secret),
    Probe(6, "write through a symbolic link", _per("EROFS", "EPERM"), _follows_symlink),
    Probe(7, "write through a hard link", _per("ENOENT, EXDEV", "EPERM"), _hardlinks),
    Probe(8, "rename a file out of the workspace", _per("EXDEV", "EPERM"), _renames_out),
    Probe(9, "write .git/hooks; move .git", _per("EROFS, EBUSY", "EPERM"), _writes_git),
    Probe(
        10,
        "create absent protected names, .VSCODE",
        _per("EROFS; .VSCODE: ok", "EPERM; .VSCODE: EPERM"),
        _creates_protected,
    ),
    Probe(11, "connect to a TCP port of the host", _per("ECONNREFUSED", "EPERM"), _connects_tcp),
    Probe(12, "send UDP to the host", _per("nothing arrives", "EPERM"), _sends_udp),
    Probe(13, "connect to a unix socket", _both("EPERM"), _connects_unix),
    Probe(14, "signal the app", _per("ESRCH", "EPERM"), _signals_app),
    Probe(15, "trace the app", _both("EPERM, EPERM"), _traces_app),
    Probe(16, "find a secret of the app's environment", _both("absent"), _reads_environment),
    Probe(
        17, "open /dev/tty; type into a terminal", _per("ENXIO, EPERM", "EPERM"), _reaches_terminal
    ),
    Probe(18, "a daemon after the time limit", _both("dead"), _survives),
    Probe(19, "flood the output", _both("output limit"), _floods),
    Probe(20, "wait for input", _both("end of file"), _waits_for_input),
    Probe(21, "mount, new namespace / nested sandbox", _per("EPERM, EPERM", "denied"), _escalates),
    Probe(22, "read the keychain", {"darwin": "not found"}, _reads_keychain),
    Probe(23, "clipboard, open, osascript, launchctl", {"darwin": "all fail"}, _reaches_desktop),
    Probe(
        24,
        "confinement as the kernel reports it",
        _per("CapEff=0 NoNewPrivs=1 Seccomp=2; /proc: EROFS, EROFS; set-user-ID: EPERM", "True"),
        _is_confined,
    ),
)


def probes(system: str = sys.platform) -> tuple[Probe, ...]:
    """The probes that exist on a system: 22 on Linux, 24 on macOS."""
    return tuple(probe for probe in ALL_PROBES if system in probe.expected)
