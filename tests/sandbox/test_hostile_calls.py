"""The hostile and awkward calls of the design note (section 5) that the sandbox has to stop.

Each test carries the number of its call there. What file tools add on top (names, diffs, argument
checks) is tested with them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
import time

import pytest

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import MIB, Limits, Policy
from minicpm5_mac.sandbox.process import Reason, run, start
from minicpm5_mac.sandbox.protected import PROTECTED_NAMES
from minicpm5_mac.sandbox.worker_call import python_command, shell_command

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.fixture
def repository(workspace):
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    return workspace


def text(ended) -> str:
    return ended.stdout.text()


def test_01_the_hosts_users_are_not_in_etc_passwd(shell):
    lines = text(shell("cat ../../etc/passwd /etc/passwd; cat /etc/shadow")).splitlines()
    assert not [line for line in lines if line.startswith(("root:x:0:", "daemon:", "sshd:"))]
    assert "No such file" in lines[-1]


def test_02_a_key_in_a_home_folder_is_not_there(shell, tmp_path):
    key = tmp_path / "home" / ".ssh" / "id_rsa"
    key.parent.mkdir(parents=True)
    key.write_text("SECRET KEY")
    ended = shell(f"cat {key}; ls {key.parent}; ls -a /root /home /mnt /srv /tmp /var")
    assert "SECRET" not in text(ended)
    assert "id_rsa" not in text(ended).replace(str(key), "")


def test_02_folders_with_private_things_are_absent(shell):
    for folder in ("/home", "/mnt", "/srv", "/var", "/media", "/opt", "/sys", "/boot"):
        assert "No such file" in text(shell(f"ls {folder}")), folder
    # The temporary folder is there, as the way to the run's own folder: nothing else in it is.
    with tempfile.NamedTemporaryFile(prefix="private-", dir=tempfile.gettempdir()) as private:
        listed = text(shell(f"ls -A {tempfile.gettempdir()}"))
        assert "minicpm5-run-" in listed
        assert os.path.basename(private.name) not in listed


def test_03_tmp_is_not_writable_but_the_run_folder_is(shell):
    ended = shell("touch /tmp/x; touch $TMPDIR/x && echo made; touch $HOME/y && echo home")
    assert "Read-only file system" in text(ended)
    assert text(ended).endswith("made\nhome\n")
    assert not os.path.exists("/tmp/x")


def test_04_a_link_out_writes_nothing(shell, workspace, tmp_path):
    (tmp_path / "outside").write_text("kept")
    (workspace / "link").symlink_to("../outside")
    assert shell("echo gone > link").status != 0
    assert (tmp_path / "outside").read_text() == "kept"


def test_05_a_link_swapped_during_writes_never_leads_out(workspace, tmp_path, sandbox):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    target = workspace / "target"
    going = start(
        Policy(workspace),
        shell_command("while [ ! -e stop ]; do echo evil 2>/dev/null > target; done; echo all"),
    )
    for _ in range(1_000):
        for make in (lambda: target.symlink_to(outside), lambda: target.write_text("")):
            target.unlink(missing_ok=True)
            with contextlib.suppress(FileExistsError):
                make()
    (workspace / "stop").write_text("")
    assert "all" in text(going.wait())
    assert outside.read_text() == "kept"


def test_10_endless_output_is_cut_and_killed(shell):
    ended = shell("yes")
    assert ended.reason is Reason.OUTPUT
    assert ended.status == 137
    assert len(ended.stdout.head) + len(ended.stdout.tail) == 32 * 1024
    assert ended.stdout.spilled == 10 * MIB == ended.stdout.spill.stat().st_size


def test_11_one_line_of_50_megabytes_is_capped(shell):
    ended = shell("head -c 50000000 /dev/zero | tr '\\0' a")
    assert ended.reason is Reason.EXIT
    assert ended.stdout.total == 50_000_000
    assert len(text(ended)) < 40_000
    assert f"{50_000_000 - 32 * 1024} bytes left out" in text(ended)


def test_12_the_clipboard_sequence_is_stripped(shell):
    assert text(shell(r"printf 'a\033]52;c;aGk=\ab\n'")) == "ab\n"


def test_13_an_endless_loop_ends_at_the_time_limit(shell):
    ended = shell("echo begun; while :; do :; done", wall_seconds=0.5)
    assert (ended.reason, ended.status) == (Reason.TIMEOUT, 124)
    assert text(ended) == "begun\n"


def test_14_a_background_process_neither_holds_nor_outlives_the_call(shell, alive):
    ended = shell("sleep 917.25 & echo started")
    assert (text(ended), ended.status) == ("started\n", 0)
    assert not alive("917.25")


def test_15_a_fork_bomb_is_ended_and_the_app_lives(shell, alive):
    # One that stops growing by itself after some hundreds: the kernel's limit does not bind root,
    # and between two looks of the watchdog a real one fills the machine's process table.
    bomb = "f() { sleep 918.25 & if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; wait; }; f 7"
    ended = shell(bomb, processes=40)
    assert ended.reason is Reason.PROCESSES or "fork" in text(ended)
    until = time.monotonic() + 2
    while alive("918.25") and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive("918.25")


def test_15_processes_are_counted_by_the_watchdog_too(shell):
    ended = shell("for i in 1 2 3 4 5 6 7 8 9; do sleep 30 & done; wait", processes=8)
    # The kernel's limit stops an unprivileged user, the watchdog root.
    assert ended.reason is Reason.PROCESSES or "retry" in text(ended) or "fork" in text(ended)


def test_16_more_memory_than_there_is_fails_inside(workspace):
    policy = Policy(workspace, limits=Limits(memory_bytes=256 * MIB))
    ended = run(policy, python_command("x = bytearray(64 << 30)"))
    assert "MemoryError" in text(ended)


def test_16_memory_of_the_whole_tree_is_watched(workspace):
    code = (
        "import os, time\nfor _ in range(3):\n    if os.fork() == 0: break\n"
        "x = bytearray(os.urandom(1)) * (100 << 20)\ntime.sleep(30)"
    )
    policy = Policy(workspace, limits=Limits(memory_bytes=256 * MIB))
    assert run(policy, python_command(code)).reason is Reason.MEMORY


def test_16_shared_memory_is_bounded(shell):
    ended = shell("head -c 200000000 /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x")
    assert "No space left" in text(ended)


def test_17_a_file_stops_at_its_limit(shell, workspace):
    shell("dd if=/dev/zero of=big bs=65536 count=9999", file_bytes=4 * MIB)
    assert (workspace / "big").stat().st_size == 4 * MIB


def test_17_a_nearly_full_disk_ends_the_command(shell, workspace):
    more_than_free = shutil.disk_usage(workspace).total
    assert shell("sleep 20", free_disk_bytes=more_than_free).reason is Reason.DISK


def test_18_names_do_not_resolve_and_nothing_is_routed(workspace):
    code = (
        "import socket\n"
        "for go in (lambda: socket.getaddrinfo('example.com', 80),\n"
        "           lambda: socket.create_connection(('192.0.2.1', 80), 2)):\n"
        "    try: go(); print('reached')\n"
        "    except OSError as error: print(type(error).__name__, error)\n"
    )
    printed = text(run(Policy(workspace), python_command(code)))
    assert "reached" not in printed
    assert "unreachable" in printed


def test_19_a_service_on_this_machine_is_out_of_reach(workspace):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        assert "refused" in text(run(Policy(workspace), python_command(code)))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_19_abstract_sockets_of_the_host_are_out_of_reach(workspace):
    name = f"\0minicpm5-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        server.setblocking(False)
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert "not permitted" in text(run(Policy(workspace), python_command(code)))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_20_no_secret_of_the_environment_arrives(shell, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-tell")
    printed = text(
        shell("env; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/*/environ | tr '\\0' '\\n'")
    )
    assert "PATH=" in printed
    assert "sk-do-not-tell" not in printed
    assert "OPENAI" not in printed


def test_20_the_environment_is_the_allow_list(shell, monkeypatch):
    for name in [name for name in os.environ if name.startswith("LC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("LD_PRELOAD", "/x.so")
    names = {line.split("=")[0] for line in text(shell("/usr/bin/env")).splitlines()}
    allowed = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "TMPPREFIX", "USER"}
    allowed |= {"GIT_TERMINAL_PROMPT", "GIT_CONFIG_NOSYSTEM", "CI", "PAGER"}
    assert names - {"PWD", "SHLVL", "OLDPWD", "_"} == allowed


def test_20_of_the_path_only_what_can_be_read_stays(shell, monkeypatch, tmp_path, workspace):
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:relative:{workspace}/bin:/usr/bin")
    path = text(shell("echo $PATH")).strip().split(":")
    assert path[:2] == [f"{workspace}/bin", "/usr/bin"]
    assert f"{tmp_path}/bin" not in path
    assert "relative" not in path


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "ln -s /bin/true .git/hooks/pre-commit",
        "git config core.fsmonitor ./x",
        "echo x >> .git/config",
        "mv .git g",
        "mv .git g; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
        "rm -rf .git",
        "mkdir sub && mv .git sub/",
        "mount -o remount,rw .git",
        "umount .git",
        "unshare -r sh -c 'umount .git; echo x > .git/hooks/pre-commit'",
        "chmod 777 .git; echo x > .git/x",
        "echo x > ../ws/.git/x",
        "echo x > /proc/self/cwd/.git/x",
    ],
)
def test_21_22_23_git_stays_as_it_is(shell, repository, command):
    before = sorted(repository.joinpath(".git").rglob("*"))
    shell(command)
    assert sorted(repository.joinpath(".git").rglob("*")) == before
    assert (repository / ".git" / "config").read_text() == "[core]\n"
    assert not (repository / "g").exists()


def test_21_git_itself_works_for_reading(shell, repository):
    shutil.rmtree(repository / ".git")
    if shutil.which("git") is None:
        pytest.skip("needs git: sudo apt install git")
    os.system(f"git -C {repository} init -q")
    (repository / "new").write_text("")
    assert text(shell("git status --short")) == "?? new\n"


def test_21_a_nested_repository_is_protected_where_it_exists(shell, workspace):
    (workspace / "a" / "b" / ".git" / "hooks").mkdir(parents=True)
    shell("echo x > a/b/.git/hooks/pre-commit; mv a/b/.git a/b/g; echo y > a/b/fine")
    assert (workspace / "a" / "b" / "fine").exists()
    assert os.listdir(workspace / "a" / "b" / ".git") == ["hooks"]
    assert not os.listdir(workspace / "a" / "b" / ".git" / "hooks")


@pytest.mark.parametrize(
    "place", ["sub/inner", "a/b/c/d/e/f", "build", "target/x", "node_modules", ".hidden/x", ".venv"]
)
def test_21_wherever_a_repository_lies_it_is_protected_and_cannot_be_moved(shell, workspace, place):
    config = workspace / place / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n")
    top = place.split("/")[0]
    tried = shell(
        f"echo x >> {place}/.git/config; mv {top} away; mv {place}/.git {place}/g; "
        f"rm -rf {top}; test ! -e away && echo not moved"
    )
    assert "not moved" in text(tried)
    assert config.read_text() == "[core]\n"


def test_24_nothing_of_the_kernel_is_set_and_no_program_lends_the_users_rights(shell, workspace):
    done = shell(
        "for f in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/sysrq-trigger "
        "/proc/self/oom_score_adj; do cat /dev/null >> $f && echo written; done; "
        "cp /bin/true lends; chmod 4755 lends; chmod 2755 lends; chmod g+s lends; "
        "install -m 6755 /bin/true too; (umask 0; touch plain); chmod 755 lends && echo usual"
    )
    assert "written" not in text(done)
    assert "usual" in text(done)
    assert all(path.stat().st_mode & 0o6000 == 0 for path in workspace.iterdir())


def test_21_a_git_file_of_a_worktree_is_protected(shell, workspace):
    (workspace / ".git").write_text("gitdir: /elsewhere\n")
    shell("echo 'gitdir: ./evil' > .git; rm .git; mv .git g")
    assert (workspace / ".git").read_text() == "gitdir: /elsewhere\n"


def test_21_a_repository_behind_a_git_file_is_protected(shell, workspace):
    (workspace / "kept" / "g" / "hooks").mkdir(parents=True)
    (workspace / "code").mkdir()
    (workspace / "code" / ".git").write_text("gitdir: ../kept/g\n")
    shell(
        "echo x > kept/g/hooks/pre-commit; echo x > kept/g/config; mv kept away; echo ok > kept/f"
    )
    assert os.listdir(workspace / "kept" / "g") == ["hooks"]
    assert not os.listdir(workspace / "kept" / "g" / "hooks")
    assert (workspace / "kept" / "f").exists()


def test_24_protected_names_are_not_created(shell, workspace):
    (workspace / "a").mkdir()
    for name in PROTECTED_NAMES:
        shell(
            f"mkdir {name}; echo x > {name}/t; echo x > {name}; ln -sf /bin/true {name}; "
            f"mv a {name}; rm -rf {name}; mkdir {name}"
        )
    assert os.listdir(workspace) == ["a"]


def test_24_they_are_protected_in_a_granted_folder_too(workspace, tmp_path):
    granted = tmp_path / "granted"
    granted.mkdir()
    policy = Policy(workspace, write=(granted,))
    ended = run(policy, shell_command(f"echo x > {granted}/.envrc; echo x > {granted}/fine"))
    assert os.listdir(granted) == ["fine"], text(ended)


@pytest.fixture
def walls(shell, tmp_path):
    """For calls that would do harm without a sandbox: first see, harmlessly, that there is one."""
    seen = shell(f"touch {tmp_path}/evil /usr/evil /etc/evil 2>&-; ls /proc | grep -c '^[0-9]'")
    assert int(text(seen)) < 9  # processes: only our own
    assert not os.path.exists("/usr/evil")
    assert not os.path.exists("/etc/evil")
    assert not (tmp_path / "evil").exists()


@pytest.mark.usefixtures("walls")
def test_25_removing_everything_keeps_root_git_and_the_outside(shell, repository, tmp_path):
    (tmp_path / "outside").write_text("kept")
    (repository / "file").write_text("")
    # Of "$UNSET"/* what is quickly gone through: /usr alone takes its time to refuse.
    shell('rm -rf . "$UNSET"/[d-t]* ../* ~/*; rm -rf "$PWD"')
    assert os.listdir(repository) == [".git"]
    assert (repository / ".git" / "config").exists()
    assert (tmp_path / "outside").read_text() == "kept"


@pytest.mark.usefixtures("walls")
def test_26_killing_reaches_nobody_outside(shell):
    shell(f"kill -9 {os.getpid()}; kill -9 $PPID; kill -9 -1")
    assert text(shell("echo alive")) == "alive\n"


def test_27_a_docker_socket_is_out_of_reach(workspace):
    path = workspace / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        server.setblocking(False)
        code = "import socket; socket.socket(socket.AF_UNIX).connect('docker.sock')"
        assert "not permitted" in text(run(Policy(workspace), python_command(code)))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_38_after_a_cancel_the_next_call_works(workspace, alive):
    began = threading.Event()
    going = start(
        Policy(workspace),
        shell_command("echo partial; sleep 919.25 & wait"),
        on_output=lambda stream, chunk: began.set(),
    )
    assert began.wait(20)
    going.cancel()
    going.cancel()
    ended = going.wait()
    going.cancel()
    assert (ended.reason, ended.status) == (Reason.CANCELLED, 130)
    assert text(ended) == "partial\n"
    assert not alive("919.25")
    assert os.listdir(workspace) == []
    assert text(run(Policy(workspace), shell_command("echo next"))) == "next\n"


def test_39_two_calls_at_once_keep_their_outputs_apart(workspace):
    def loop(letter: str):
        return shell_command(f"i=0; while [ $i -lt 2000 ]; do echo {letter}; i=$((i+1)); done")

    policy = Policy(workspace)
    both = [start(policy, loop(letter)) for letter in "ab"]
    assert [text(each.wait()) for each in both] == ["a\n" * 2000, "b\n" * 2000]
    assert os.listdir(workspace) == []


def test_the_interpreter_in_the_workspace_cannot_be_replaced(workspace, monkeypatch):
    (workspace / "sub" / "venv" / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(workspace / "sub" / "venv"))
    for command in (
        "echo x > sub/venv/bin/python",
        "mv sub/venv sub/v",
        "mv sub s; mkdir -p sub/venv/bin",
        "echo y > sub/fine",
    ):
        run(Policy(workspace), shell_command(command))
    assert sorted(path.name for path in workspace.rglob("*")) == ["bin", "fine", "sub", "venv"]


def test_a_protected_name_that_is_a_link_is_refused(workspace, tmp_path):
    (tmp_path / "hooks").mkdir()
    (workspace / ".githooks").symlink_to(tmp_path / "hooks")
    with pytest.raises(Failure, match="symbolic link"):
        run(Policy(workspace), shell_command("true"))
    assert os.listdir(workspace) == [".githooks"]
