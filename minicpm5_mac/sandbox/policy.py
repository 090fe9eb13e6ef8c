"""What a tool may reach: one frozen value, checked when it is made, translated by the back ends.

There is no field for the network: it is off, and nothing a model or a repository writes can turn
it on. Nor is there one for the protected names (`protected.py`).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import minicpm5_mac
from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.protected import PROTECTED_NAMES, is_protected

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# sandbox-exec rejects string literals longer than about 1025 bytes (srt's source says so).
LONGEST_PATH_BYTES = 900
LONGEST_WALL_SECONDS = 600.0

# Kernel and device views: inside, the sandbox has its own or none. Theirs name every process.
NEVER_GRANTED = ("/proc", "/sys", "/dev", "/run")
# What belongs to the system may be read, never written.
NEVER_WRITTEN = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot"),
    *("/System", "/Library", "/private/etc", "/private/var/db"),
)


@dataclass(frozen=True)
class Limits:
    """The parent-side limits (design note, rule 3). Bytes and seconds.

    Beyond `output_bytes` the command is killed; of its output `output_head_bytes` and
    `output_tail_bytes` are kept for the model and `spill_bytes` on disk. Of a command that is
    written to as it runs, `output_bytes` counts from the last time it was.
    lasting: no time limit at all: a program that is talked to, ended by whoever started it.
    """

    wall_seconds: float = 60.0
    memory_bytes: int = 4 * GIB
    processes: int = 128
    file_bytes: int = 256 * MIB
    open_files: int = 512
    free_disk_bytes: int = GIB
    output_head_bytes: int = 8 * KIB
    output_tail_bytes: int = 24 * KIB
    spill_bytes: int = 10 * MIB
    output_bytes: int = 64 * MIB
    lasting: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.wall_seconds <= LONGEST_WALL_SECONDS:
            raise Failure(
                f"a time limit of {self.wall_seconds:g} s is not possible",
                f"Give more than 0 and at most {LONGEST_WALL_SECONDS:g} seconds.",
                exit_code=2,
            )


def cpu_seconds(limits: Limits) -> str:
    """What a process may compute for, as `prlimit` and zsh's `ulimit` take it."""
    return "unlimited" if limits.lasting else str(int(limits.wall_seconds) + 1)


@dataclass(frozen=True)
class Policy:
    """Where a sandboxed command may read and write.

    workspace: the folder it works in; writable unless `writable` is False.
    read, write: further folders the user granted. All are resolved (`realpath`) here, and a
        folder already covered by another grant of the same strength is dropped.
    environment: variables that the user gives to this program, by name; never a model's words.
    Raises Failure when a folder is missing, or too much to hand to a tool.
    """

    workspace: Path
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    writable: bool = True
    limits: Limits = field(default_factory=Limits)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        workspace = _granted(self.workspace, "the workspace")
        write = outermost(_granted(path, "a writable folder") for path in self.write)
        read = outermost(_granted(path, "a readable folder") for path in self.read)
        if self.writable:
            write = tuple(path for path in write if not path.is_relative_to(workspace))
        writes = ((workspace,) if self.writable else ()) + write
        read = tuple(p for p in read if not any(p.is_relative_to(root) for root in writes))
        for root in writes:
            _check_writable(root)
        object.__setattr__(self, "workspace", workspace)
        object.__setattr__(self, "write", write)
        object.__setattr__(self, "read", read)

    @property
    def write_roots(self) -> tuple[Path, ...]:
        """Every folder that can be written, the run's own temporary folder aside."""
        return ((self.workspace,) if self.writable else ()) + self.write

    @property
    def read_roots(self) -> tuple[Path, ...]:
        """Every folder that can be read but not written, system folders aside."""
        return (() if self.writable else (self.workspace,)) + self.read

    @property
    def protected(self) -> tuple[str, ...]:
        """Names that stay read-only in every write root, also where they are absent."""
        return PROTECTED_NAMES

    def pinned(self) -> tuple[Path, ...]:
        """Paths inside the write roots that run or decide this program: kept read-only.

        A `.venv` in the workspace that holds our interpreter, or a checkout of this program:
        writing there would be carried out, unsandboxed, at the next start.
        """
        return tuple(
            path
            for path in program_folders()
            if any(path.is_relative_to(root) for root in self.write_roots)
        )


def program_folders() -> tuple[Path, ...]:
    """The interpreter and this package, wherever they lie: as named and as resolved.

    Both spellings, since a virtual environment names its base through links (uv, pyenv, Homebrew).
    """
    named = [Path(sys.prefix), Path(sys.base_prefix), Path(minicpm5_mac.__file__).parent]
    named.append(Path(os.path.realpath(sys.executable)).parent.parent)
    both = [*named, *(Path(os.path.realpath(path)) for path in named)]
    return tuple(dict.fromkeys(Path(os.path.normpath(path)) for path in both))


def temporary_folder() -> Path:
    """Where runs get their private folders; resolved."""
    return Path(os.path.realpath(tempfile.gettempdir()))


def own_data_folders() -> tuple[Path, ...]:
    """Where this program keeps what decides about tools; resolved, and maybe not there yet."""
    folders = (locations.config_file().parent, locations.data_dir(), locations.cache_dir())
    return tuple(Path(os.path.realpath(folder)) for folder in (*folders, locations.log_dir()))


def check_path_text(path: Path | str, what: str) -> None:
    """Refuse what the back ends cannot express: control characters, over-long paths."""
    text = os.fspath(path)
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise Failure(
            f"{what} has a control character in its name: {text!r}",
            "Rename the folder, or choose another one.",
            exit_code=2,
        )
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise Failure(
            f"{what} has a name that is not valid UTF-8: {text!r}",
            "Rename the folder, or choose another one.",
            exit_code=2,
        ) from None
    if length > LONGEST_PATH_BYTES:
        raise Failure(
            f"the path of {what} is {length} bytes long",
            f"The sandbox can express at most {LONGEST_PATH_BYTES} bytes: choose a shorter one.",
            exit_code=2,
        )


def home_folders() -> tuple[Path, ...]:
    """The user's home: by the environment and by the password database, resolved."""
    homes = [os.environ.get("HOME") or "/"]
    # A user id without an entry, as in a container: the environment has to do.
    with contextlib.suppress(KeyError):
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    found = (Path(os.path.realpath(home)) for home in homes)
    return tuple(dict.fromkeys(home for home in found if home != Path("/")))


def _granted(path: Path, what: str) -> Path:
    check_path_text(path, what)
    resolved = Path(os.path.realpath(path))
    check_path_text(resolved, what)
    if not resolved.is_dir():
        raise Failure(f"{what} {resolved} is not a folder", "Name an existing folder.", exit_code=2)
    if resolved == Path("/"):
        raise Failure(f"{what} cannot be /", "Name a folder of your own below it.", exit_code=2)
    for folder in NEVER_GRANTED:
        if resolved.is_relative_to(folder):
            raise Failure(
                f"{what} {resolved} lies in {folder}, which the sandbox never shows",
                "Name a folder of your own.",
                exit_code=2,
            )
    for home in home_folders():
        if home.is_relative_to(resolved):
            raise Failure(
                f"{what} {resolved} is or contains your home folder",
                "Name a project folder inside it: everything in your home stays out of reach.",
                exit_code=2,
            )
    return resolved


def _check_writable(root: Path) -> None:
    if is_protected(str(root)):
        raise Failure(
            f"{root} lies inside a folder that tools never write (as .git, .vscode)",
            "Choose a folder outside of it, or grant it for reading.",
            exit_code=2,
        )
    for folder in NEVER_WRITTEN:
        if root.is_relative_to(folder):
            raise Failure(
                f"{root} belongs to the system",
                "Choose a folder of your own, or grant it for reading.",
                exit_code=2,
            )
    if temporary_folder().is_relative_to(root):
        raise Failure(
            f"{root} contains the temporary folder, where every run keeps what is its own",
            "Choose a folder inside of it, or another one.",
            exit_code=2,
        )
    for folder in own_data_folders():
        if folder.is_relative_to(root) or root.is_relative_to(folder):
            raise Failure(
                f"{root} holds this program's own data ({folder})",
                "Choose another folder: saved approvals and the sandbox's verdict lie there.",
                exit_code=2,
            )
    for folder in program_folders():
        if root.is_relative_to(folder):
            raise Failure(
                f"{root} belongs to the program that runs the sandbox ({folder})",
                "Choose a folder outside of it.",
                exit_code=2,
            )


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The distinct paths that lie inside no other of them."""
    distinct = list(dict.fromkeys(paths))
    return tuple(
        path
        for path in distinct
        if not any(path != other and path.is_relative_to(other) for other in distinct)
    )
