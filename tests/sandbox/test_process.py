"""Starting, streaming, limiting and ending one command (rule 3 of the design note)."""

from __future__ import annotations

import os
import resource
import stat
import threading
import time

import pytest

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import linux
from minicpm5_mac.sandbox.policy import MIB, Limits, Policy
from minicpm5_mac.sandbox.process import Reason, run, start
from minicpm5_mac.sandbox.worker_call import python_command, shell_command
from minicpm5_mac.sandbox.wrapping import unconfined

pytestmark = pytest.mark.usefixtures("sandbox")


def text(ended) -> str:
    return ended.stdout.text()


@pytest.mark.parametrize(
    ("command", "status"),
    [("true", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("nosuch", 127)],
)
def test_the_exit_status_is_the_commands(shell, command, status):
    ended = shell(command)
    assert (ended.reason, ended.status) == (Reason.EXIT, status)


def test_output_comes_while_the_command_runs(workspace):
    seen: list[tuple[str, bytes]] = []
    going = start(
        Policy(workspace, limits=Limits(wall_seconds=30)),
        shell_command("echo first; while [ ! -e go ]; do sleep 0.05; done; echo second"),
        on_output=lambda stream, chunk: seen.append((stream, chunk)),
    )
    while not seen and going.running:
        time.sleep(0.01)
    assert seen == [("stdout", b"first\n")]
    (workspace / "go").write_text("")
    assert text(going.wait()) == "first\nsecond\n"
    assert seen[1:] == [("stdout", b"second\n")]


def test_streams_are_merged_in_order_or_kept_apart(workspace):
    command = shell_command("echo 1; echo 2 >&2; echo 3")
    merged = run(Policy(workspace), command)
    assert (text(merged), merged.stderr) == ("1\n2\n3\n", None)
    apart = run(Policy(workspace), command, separate_stderr=True)
    assert (text(apart), apart.stderr.text()) == ("1\n3\n", "2\n")


def test_input_is_fed_and_closed_else_at_its_end_at_once(workspace):
    data = b"x" * (3 * MIB)
    counted = run(Policy(workspace), ("/usr/bin/wc", "-c"), stdin=data)
    assert text(counted).strip() == str(len(data))
    assert run(Policy(workspace), ("/bin/true",), stdin=data).status == 0
    assert text(run(Policy(workspace), ("/usr/bin/wc", "-c"))).strip() == "0"


def test_an_end_is_asked_for_first_then_enforced(workspace):
    """TERM, then KILL: what a time limit does, and a cancel."""
    for command, printed in (
        ("trap 'echo bye; exit 3' TERM; echo begun; sleep 60 & wait", "begun\nbye\n"),
        ("trap '' TERM; echo begun; while :; do sleep 0.1; done", "begun\n"),
    ):
        begun = threading.Event()
        going = start(
            Policy(workspace), shell_command(command), on_output=lambda *_, e=begun: e.set()
        )
        assert begun.wait(20)
        going.cancel()
        ended = going.wait()
        assert (text(ended), ended.reason, ended.status) == (printed, Reason.CANCELLED, 130)


def test_a_command_that_ignores_the_end_is_killed_at_its_time_limit(workspace):
    policy = Policy(workspace, limits=Limits(wall_seconds=1))
    deaf = run(policy, shell_command("trap '' TERM; while :; do sleep 0.1; done"))
    assert (deaf.reason, deaf.status) == (Reason.TIMEOUT, 124)


def test_a_callback_that_raises_cancels_and_is_raised(workspace, alive):
    def fail(stream, chunk):
        raise LookupError("no")

    with pytest.raises(LookupError):
        run(Policy(workspace), shell_command("echo x; sleep 921.25"), on_output=fail)
    assert not alive("921.25")


def test_limits_inside_are_those_of_the_policy(shell):
    ended = shell(
        "cat /proc/self/limits", file_bytes=7 * MIB, open_files=99, processes=77, wall_seconds=9
    )
    rows = {line[:26].strip(): line[26:].split()[:2] for line in text(ended).splitlines()}
    assert rows["Max core file size"] == ["0", "0"]
    assert rows["Max file size"] == [str(7 * MIB)] * 2
    assert rows["Max open files"] == ["99", "99"]
    assert rows["Max processes"] == ["77", "77"]
    assert rows["Max cpu time"] == ["10", "10"]


def test_no_descriptor_of_the_app_is_inherited(shell, tmp_path):
    secret = os.open(tmp_path / "secret", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(secret, True)
    try:
        listed = text(shell("for f in /proc/self/fd/*; do readlink $f; done")).split()
    finally:
        os.close(secret)
    assert not [path for path in listed if "secret" in path]
    assert [path for path in listed if path.startswith("pipe:")]


def test_no_descriptors_are_leaked(workspace):
    run(Policy(workspace), ("/bin/true",))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run(Policy(workspace), ("/bin/true",))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_command_has_a_session_of_its_own_and_no_terminal(workspace):
    code = "import os; print(os.getsid(0) != 0)\ntry: open('/dev/tty')\nexcept OSError: print('no')"
    assert text(run(Policy(workspace), python_command(code))).split()[-1] == "no"


def test_the_run_folder_is_private_and_removed_whatever_is_in_it(shell):
    ended = shell(
        "echo $TMPDIR; stat -c %a $TMPDIR; mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; "
        "ln -s / $TMPDIR/root; chmod 0 $TMPDIR/a/b $TMPDIR/a $TMPDIR"
    )
    folder, mode = text(ended).split()
    assert mode == "700"
    assert not os.path.lexists(folder)


def test_a_run_folder_deeper_than_any_path_is_removed(workspace):
    code = (
        "import os; print(os.environ['TMPDIR']); os.chdir(os.environ['TMPDIR'])\n"
        "for _ in range(3000): os.mkdir('d'); os.chdir('d')"
    )
    folder = text(run(Policy(workspace), python_command(code))).strip()
    assert not os.path.lexists(folder)


def test_a_here_document_works(shell):
    assert text(shell("cat <<END\nhere\nEND")) == "here\n"


def test_users_and_terminals_and_workers_of_python_work(workspace):
    code = (
        "import getpass, multiprocessing, os, pwd, socket\n"
        "print(pwd.getpwuid(os.getuid()).pw_name == getpass.getuser())\n"
        "with multiprocessing.Lock(): print('lock')\n"
        "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9).decode())\n"
        "print(len(os.openpty()))\n"
    )
    assert text(run(Policy(workspace), python_command(code))).split() == [
        *("True", "lock", "pair", "2"),
    ]


def test_memory_of_the_app_does_not_grow_with_the_output(workspace):
    run(Policy(workspace), ("/usr/bin/yes",))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(Policy(workspace), ("/usr/bin/yes",))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50 * 1024  # KiB


def test_spilled_output_is_for_the_user_alone(shell):
    spill = shell("head -c 100000 /dev/zero | tr '\\0' a").stdout.spill
    assert stat.S_IMODE(spill.stat().st_mode) == 0o600
    assert spill.read_text() == "a" * 100000


def test_a_sandbox_that_does_not_start_says_why(workspace):
    def broken(policy, command, tmp):
        wrapped = linux.wrap(policy, command, tmp)
        import dataclasses

        argv = [*wrapped.argv[:1], "--ro-bind", "/nowhere", "/nowhere", *wrapped.argv[1:]]
        return dataclasses.replace(wrapped, argv=tuple(argv))

    with pytest.raises(Failure, match="/nowhere"):
        run(Policy(workspace), ("/bin/true",), wrapper=broken)
    assert os.listdir(workspace) == []


def test_a_missing_back_end_says_how_to_install_it(workspace, monkeypatch):
    monkeypatch.setattr(linux, "BWRAP_PATH", "/nowhere")
    with pytest.raises(Failure) as caught:
        run(Policy(workspace), ("/bin/true",))
    assert "apt install bubblewrap" in caught.value.advice


def test_an_unknown_machine_is_refused(workspace, monkeypatch):
    monkeypatch.setattr(linux.platform, "machine", lambda: "riscv64")
    with pytest.raises(Failure, match="riscv64"):
        run(Policy(workspace), ("/bin/true",))


def test_a_program_on_the_users_path_is_not_taken_for_bubblewrap(workspace, monkeypatch):
    planted = workspace / "bwrap"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:{os.environ['PATH']}")
    assert text(run(Policy(workspace), shell_command("echo fine"))) == "fine\n"


def test_without_a_sandbox_the_tree_is_still_ended(workspace, alive):
    """What a user who turned the sandbox off gets: limits and an end, no walls."""
    policy = Policy(workspace, limits=Limits(wall_seconds=1))
    ended = run(policy, shell_command("sleep 922.25 & sleep 922.25"), wrapper=unconfined)
    assert ended.reason is Reason.TIMEOUT
    assert not alive("922.25")
    assert run(policy, shell_command("pwd; exit 4"), wrapper=unconfined).status == 4
