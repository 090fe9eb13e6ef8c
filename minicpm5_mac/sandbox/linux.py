"""Policy to bubblewrap: an empty root, in which only what the policy names appears.

bwrap's options: its manual page, version 0.8 (`--disable-userns` and `--size` are that new).
As root, bubblewrap without `--cap-drop ALL` is no sandbox: `mount -o remount,bind,rw /` worked
(design note); with it the same probes pass as root and as nobody.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.environment import sandbox_environment, user_name
from minicpm5_mac.sandbox.placeholders import Placeholders
from minicpm5_mac.sandbox.policy import MIB, Policy, cpu_seconds, program_folders
from minicpm5_mac.sandbox.seccomp import ARCHITECTURES, seccomp_program
from minicpm5_mac.sandbox.wrapping import Wrapped

# Programs and their libraries; /nix/store is where NixOS keeps them.
SYSTEM_READ = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
# Of /etc what the loader, the C library and compilers look up: never shadow, ssh, hosts' keys.
# Each is a mount, and every mount costs a start some of its time.
ETC_READ = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "nsswitch.conf",
    "os-release",
    "protocols",
    "services",
    "terminfo",
)
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
# bwrap is looked up here, never on the user's PATH, which may name the workspace.
BWRAP_PATH = "/usr/bin:/usr/local/bin:/bin:/run/current-system/sw/bin"
INSTALL_ADVICE = "Install it with `sudo apt install bubblewrap` (or your system's package manager)."

MOST_ENVIRONMENT_BYTES = 48 * 1024  # has to fit into a pipe's buffer, 64 KiB (pipe(7))
SHARED_MEMORY_BYTES = 64 * MIB  # /dev/shm is memory that no process's size shows
# Nested repositories are looked for this far down: a walk before every command has to be short.
# What makers fill with thousands of folders is not walked, but may be a repository itself.
NESTED_DEPTH, NESTED_FOLDERS = 8, 4000
NEVER_WALKED = {"node_modules", "__pycache__", "venv", ".venv", ".tox", ".cache", "site-packages"}


def wrap(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """`command` under bubblewrap. Raises Failure when it cannot be confined."""
    bwrap = bubblewrap()
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Failure(
            f"the Linux sandbox has no system call filter for {machine}",
            f"It runs on {' and '.join(ARCHITECTURES)}.",
        )
    given = _setting(policy.environment)
    pins = _protected_paths(policy)
    placeholders = _hold(pins)
    status_read, status_write = os.pipe()
    contents = [_readable(data) for data in (seccomp_program(machine), *_accounts(tmp))]
    environment = sandbox_environment(tmp, _readable_roots(policy), SYSTEM_PATH)
    # In a pipe, for a command line can be read by every user of the machine.
    contents += [_readable(given)] if given else []
    argv = [
        bwrap,
        *arguments(policy, tmp, environment, pins),
        *(["--args", str(contents[3])] if given else []),
        *("--json-status-fd", str(status_write)),
        *("--seccomp", str(contents[0])),
        *("--ro-bind-data", str(contents[1]), "/etc/passwd"),
        *("--ro-bind-data", str(contents[2]), "/etc/group"),
        # /proc/sys belongs to who is root outside, whatever their capabilities (proc_sys_permission
        # in fs/proc/proc_sysctl.c): kernel.core_pattern would run a program on the host.
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--"),
        *limit_arguments(policy),
        *command,
    ]
    return Wrapped(
        tuple(argv),
        environment={"PATH": BWRAP_PATH},
        descriptors=(status_write, *contents),
        status=status_read,
        finish=placeholders.remove,
    )


def arguments(
    policy: Policy, tmp: Path, environment: dict[str, str], pins: Sequence[Path]
) -> list[str]:
    """The part of bwrap's command line that follows from the policy alone.

    pins: paths in the write roots that stay read-only; each exists (see placeholders.py).
    """
    # Namespaces: own processes (nothing outside can be seen, everything inside dies with its
    # first), no network, no shared memory; no further user namespaces, where root would be back.
    argv = ["--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns"]
    argv += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    argv += ["--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]
    for folder in SYSTEM_READ:
        if os.path.islink(folder):
            argv += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            argv += ["--ro-bind", folder, folder]
    for name in ETC_READ:
        if os.path.exists(f"/etc/{name}"):
            argv += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    argv += list(_binds(policy, tmp))
    # A mounted name can be neither written, nor moved, nor removed (EBUSY). Pinning `.git/hooks`
    # alone was escaped by `mv .git x; mkdir -p .git/hooks` (design note). An interpreter deeper
    # down needs every folder on the way pinned, or the same works one level up.
    for path in policy.pinned():
        for folder in _between(path, policy.write_roots):
            argv += ["--bind", str(folder), str(folder)]
        argv += ["--ro-bind", str(path), str(path)]
    for path in pins:
        # Likewise a nested repository, whose folder could be moved away and copied back.
        for folder in _between(path, policy.write_roots):
            argv += ["--bind", str(folder), str(folder)]
        argv += ["--ro-bind", str(path), str(path)]
    return [*argv, "--chdir", str(policy.workspace)]


def limit_arguments(policy: Policy) -> list[str]:
    """`prlimit` inside the sandbox: hard limits nothing in there can raise again.

    The process limit counts within the sandbox's user namespace, and does not bind root
    (design note); memory is private writable memory, per process. The watchdog is the bound on
    the whole tree.
    """
    limits = policy.limits
    return [
        "/usr/bin/prlimit",
        "--core=0",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        f"--cpu={cpu_seconds(limits)}",
        f"--nproc={limits.processes}",
        f"--data={limits.memory_bytes}",
    ]


def _binds(policy: Policy, tmp: Path) -> Iterator[str]:
    """Folders shallow first, so that a deeper one lies on top of the one that contains it."""
    kinds: dict[Path, str] = {path: "--ro-bind" for path in _program_binds(policy)}
    kinds |= {path: "--ro-bind" for path in policy.read_roots}
    kinds |= {path: "--bind" for path in (*policy.write_roots, tmp)}
    for path in sorted(kinds, key=lambda path: len(path.parts)):
        yield from (kinds[path], str(path), str(path))


def _program_binds(policy: Policy) -> list[Path]:
    """The program's own folders that no system folder or grant already shows."""
    shown = [*(Path(folder) for folder in SYSTEM_READ), *policy.read_roots, *policy.write_roots]
    return [
        folder
        for folder in program_folders()
        if folder.is_dir() and not any(folder.is_relative_to(other) for other in shown)
    ]


def _readable_roots(policy: Policy) -> tuple[Path, ...]:
    system = tuple(Path(folder) for folder in SYSTEM_READ)
    return (*system, *program_folders(), *policy.read_roots, *policy.write_roots)


def _protected_paths(policy: Policy) -> list[Path]:
    """Protected names of every write root, and the nested repositories that exist.

    Raises Failure when one is a symbolic link: a mount would land on its target, and the link
    itself could be replaced.
    """
    paths = []
    for root in policy.write_roots:
        paths += [root / name for name in policy.protected]
        repositories = [root / ".git", *_nested_repositories(root)]
        paths += repositories[1:]
        paths += _separate_git_folders(repositories, policy.write_roots)
    for path in paths:
        if path.is_symlink():
            raise Failure(
                f"{path} is a symbolic link, which the Linux sandbox cannot protect",
                "Replace it by the file or folder it points to, or work in another folder.",
            )
    return paths


def _nested_repositories(root: Path) -> Iterator[Path]:
    """The `.git` of every repository below a root, as far as the walk goes: breadth first."""
    level, seen = [root], 0
    for _ in range(NESTED_DEPTH):
        deeper = []
        for folder in level:
            seen += 1
            if seen > NESTED_FOLDERS:
                return
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue  # unreadable for us is unwritable from inside
            for entry in entries:
                if entry.name == ".git":
                    if folder != root:
                        yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name not in NEVER_WALKED:
                        deeper.append(Path(entry.path))
                    elif os.path.lexists(git := os.path.join(entry.path, ".git")):
                        yield Path(git)
        level = deeper


def _separate_git_folders(repositories: Sequence[Path], roots: Sequence[Path]) -> list[Path]:
    """Where `.git` files say that their repository is (gitrepository-layout(5)), in these roots.

    Of a submodule or worktree that is below a `.git` that is protected already.
    """
    found = []
    for path in repositories:
        if not path.is_file() or path.is_symlink():
            continue
        try:
            word, _, place = path.read_text(errors="replace").partition(":")
        except OSError:
            continue  # unreadable for us is of no use inside
        folder = Path(os.path.realpath(path.parent / place.strip()))
        inside = any(folder.is_relative_to(root) and folder != root for root in roots)
        if word == "gitdir" and inside and folder.is_dir() and ".git" not in folder.parts:
            found.append(folder)
    return found


def _hold(pins: Sequence[Path]) -> Placeholders:
    try:
        return Placeholders(pins)
    except OSError as error:
        raise Failure(
            f"protected names cannot be held in place: {error}",
            "Work in a folder you can write, and check the permissions of the cache folder.",
        ) from error


def _between(path: Path, roots: Sequence[Path]) -> list[Path]:
    """The folders above `path` and strictly inside the root that contains it, shallow first."""
    root = next(root for root in roots if path.is_relative_to(root))
    return [
        parent
        for parent in reversed(path.parents)
        if parent != root and parent.is_relative_to(root)
    ]


def _accounts(tmp: Path) -> tuple[bytes, bytes]:
    """passwd and group with the one user there is inside (passwd(5), group(5)).

    The sandbox's user id has no entry in the host's files, and the host's users are nobody's
    business.
    """
    name = user_name()
    passwd = f"{name}:x:1000:1000::{tmp}/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    return passwd.encode(), f"{name}:x:1000:\nnogroup:x:65534:\n".encode()


def _setting(environment: Sequence[tuple[str, str]]) -> bytes:
    """Arguments of bwrap, each ended by a NUL, that set these variables."""
    words = [word for name, value in environment for word in ("--setenv", name, value)]
    data = b"".join(os.fsencode(word) + b"\0" for word in words)
    if len(data) > MOST_ENVIRONMENT_BYTES:
        raise Failure(
            f"the environment given to a program is {len(data):,} bytes long",
            f"At most {MOST_ENVIRONMENT_BYTES:,} are passed on: put long values into a file.",
        )
    return data


def _readable(data: bytes) -> int:
    """A descriptor to read `data` from; it is smaller than a pipe's buffer."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe:
        pipe.write(data)
    return read


def bubblewrap() -> str:
    """The path of bwrap. Raises Failure with how to install it."""
    found = shutil.which("bwrap", path=BWRAP_PATH)
    if found is None:
        raise Failure("bubblewrap (bwrap) is not installed, so tools are off", INSTALL_ADVICE)
    return found
