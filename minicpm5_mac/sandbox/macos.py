"""Policy to a macOS sandbox profile (SBPL) for `sandbox-exec`.

`(deny default)` and allow rules only; every exception is a `require-not` inside an allow. Reports
disagree whether the last matching rule wins or a rule for a narrower operation does (srt, nono);
a profile of this shape means the same either way. Paths are quoted strings, never part of a
regular expression; regular expressions are constants.

Written from public profiles and reports (design note, section 2), evaluated on Linux by
tests/sandbox, and settled on a Mac by `minicpm5-mac doctor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox import protected
from minicpm5_mac.sandbox.environment import sandbox_environment
from minicpm5_mac.sandbox.policy import (
    Policy,
    check_path_text,
    cpu_seconds,
    outermost,
    program_folders,
)
from minicpm5_mac.sandbox.wrapping import Wrapped

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
SYSTEM_PATH = ("/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
# For `sandbox profile`, which runs nothing.
EXAMPLE_RUN_FOLDER = Path("/private/var/folders/xx/example/T/minicpm5-run-example")

# Programs, their libraries and their read-only data. /System as a whole would include
# /System/Volumes/Data, a second way to every home folder; /opt/homebrew its var and etc, where
# databases and server configuration live.
SYSTEM_READ = (
    "/System/Library",
    "/System/Cryptexes",
    "/System/Volumes/Preboot/Cryptexes",
    "/usr",
    "/bin",
    "/sbin",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/Applications/Xcode.app/Contents/Developer",
    *(
        f"/opt/homebrew/{name}"
        for name in ("bin", "sbin", "lib", "libexec", "opt", "Cellar", "share", "include")
    ),
    "/opt/homebrew/Frameworks",
)
DATA_READ = (
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/db/dyld",
    "/private/var/select",
    "/private/var/db/xcode_select_link",
    "/dev/fd",
)
DEVICES_READ = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
LINKS = ("/tmp", "/var", "/etc")  # macOS: links into /private, looked at on the way

# Users and groups by number, the log, libc's notifications, the per-user temporary folder. Never
# SecurityServer, securityd, secd, trustd (the keychain), lsd, launchservicesd,
# coreservices.appleevents (other applications), pasteboard, tccd, WindowServer.
MACH_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.bsd.dirhelper",
)
# What libc, Python and compilers ask about the machine; follows the list of Codex.
SYSCTLS = (
    "hw.activecpu",
    "hw.byteorder",
    "hw.cachelinesize",
    "hw.cachelinesize_compat",
    "hw.cpufamily",
    "hw.cputype",
    "hw.l1dcachesize_compat",
    "hw.l1icachesize_compat",
    "hw.l2cachesize_compat",
    "hw.l3cachesize_compat",
    "hw.logicalcpu",
    "hw.logicalcpu_max",
    "hw.machine",
    "hw.memsize",
    "hw.model",
    "hw.ncpu",
    "hw.nperflevels",
    "hw.packages",
    "hw.pagesize",
    "hw.pagesize_compat",
    "hw.physicalcpu",
    "hw.physicalcpu_max",
    "hw.tbfrequency_compat",
    "hw.vectorunit",
    "kern.argmax",
    "kern.hostname",
    "kern.maxfilesperproc",
    "kern.maxproc",
    "kern.ngroups",
    "kern.osproductversion",
    "kern.osrelease",
    "kern.ostype",
    "kern.osvariant_status",
    "kern.osversion",
    "kern.secure_kernel",
    "kern.usrstack64",
    "kern.version",
    "machdep.cpu.brand_string",
    "sysctl.proc_cputype",
    "vm.loadavg",
)
SYSCTL_PREFIXES = ("hw.optional.arm.", "hw.optional.armv8_", "hw.perflevel")
# multiprocessing names its semaphores /mp-…, joblib's loky /loky-….
SEMAPHORES = "^/(mp|loky)-[A-Za-z0-9_-]+$"


def wrap(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """`command` under sandbox-exec. Raises Failure when this system has none."""
    return _wrap(policy, command, tmp, profile(policy, tmp))


def wrap_with_system_rules(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """The same with Apple's rules for every process in it: for a release where `wrap` fails.

    A hand-made list failed on macOS 26 for one project (hozo), which imports `system.sb` since.
    What that grants is Apple's to change, so it is tried second, and by the same probes.
    """
    return _wrap(policy, command, tmp, profile(policy, tmp, system_rules=True))


def _wrap(policy: Policy, command: Sequence[str], tmp: Path, text: str) -> Wrapped:
    if not Path(SANDBOX_EXEC).exists():
        raise Failure(f"{SANDBOX_EXEC} is missing, so tools are off", "Chat works without them.")
    environment = sandbox_environment(tmp, _readable(policy), SYSTEM_PATH)
    given = dict(policy.environment)
    variables = [f"{name}={value}" for name, value in environment.items() if name not in given]
    # What the user gives is inherited, from an environment that holds nothing else: a command
    # line can be read by every user of the machine.
    clean = () if given else ("-i",)
    return Wrapped(
        (
            *(SANDBOX_EXEC, "-p", text, "--"),
            *("/usr/bin/env", *clean, *variables),
            *("/bin/zsh", "-f", "-c", _limited_start(policy), str(policy.workspace), *command),
        ),
        environment={"PATH": "/usr/bin:/bin", **given},
    )


def profile(policy: Policy, tmp: Path, *, system_rules: bool = False) -> str:
    """The profile of one run, whose private folder is `tmp` (resolved).

    system_rules: import `system.sb`, see `wrap_with_system_rules`.
    Raises Failure for a path that no string of a profile can hold.
    """
    seen = [*SYSTEM_READ, *map(str, _readable(policy)), str(tmp)]
    rules = [
        "(version 1)",
        "(deny default)",
        *(['(import "system.sb")'] if system_rules else []),
        "(allow process-fork)",
        _allow("process-exec file-map-executable", map(_subpath, seen)),
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        _allow(
            "sysctl-read",
            (
                *(f"(sysctl-name {quoted(name)})" for name in SYSCTLS),
                *(f"(sysctl-name-prefix {quoted(name)})" for name in SYSCTL_PREFIXES),
            ),
        ),
        _allow("mach-lookup", (f"(global-name {quoted(name)})" for name in MACH_SERVICES)),
        f"(allow ipc-posix-sem (ipc-posix-name-regex {_regex(SEMAPHORES)}))",
        '(allow file-read* (literal "/"))',
        _allow("file-read-metadata file-test-existence", map(_literal, _ancestors(seen))),
        _allow(
            "file-read* file-test-existence",
            (*map(_subpath, (*seen, *DATA_READ)), *map(_literal, DEVICES_READ)),
        ),
        '(allow file-write-data\n  (require-all (literal "/dev/null") '
        "(vnode-type CHARACTER-DEVICE)))",
        _allow("file-write*", (_subpath(tmp),)),
        *(_writes(policy, root) for root in policy.write_roots),
    ]
    return "\n".join(rules) + "\n"


def quoted(text: str) -> str:
    """A string literal of SBPL. Raises Failure for what it cannot hold."""
    check_path_text(text, "a path")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _writes(policy: Policy, root: Path) -> str:
    exceptions = [_literal(root)]  # the root itself can be neither renamed nor removed
    exceptions += [f"(regex {_regex(protected.PROTECTED_PATTERN)})"]
    exceptions += [f"(regex {_regex(protected.HIDDEN_NON_ASCII)})"]
    for path in policy.pinned():
        if path.is_relative_to(root):
            exceptions.append(_subpath(path))
            # Renaming a folder above it would make room for another.
            above = [parent for parent in path.parents if parent.is_relative_to(root)]
            exceptions += [_literal(parent) for parent in above if parent != root]
    lines = "\n".join(f"    (require-not {exception})" for exception in exceptions)
    return f"(allow file-write*\n  (require-all {_subpath(root)}\n{lines}))"


def _readable(policy: Policy) -> tuple[Path, ...]:
    return outermost((*program_folders(), *policy.read_roots, *policy.write_roots))


def _ancestors(paths: Iterable[str]) -> list[str]:
    """The folders above every path, /private's links included: looked at, never listed."""
    above = {str(parent) for path in (*paths, *DATA_READ) for parent in Path(path).parents}
    return sorted((above - {"/"}) | set(LINKS))


def _limited_start(policy: Policy) -> str:
    """A script for zsh, whose `ulimit` counts file sizes in 512-byte blocks (zshbuiltins(1)).

    Hard limits, set inside. RLIMIT_NPROC counts all of the user's processes and RLIMIT_AS is
    believed unenforced, so the watchdog bounds processes and memory.
    """
    limits = policy.limits
    return (
        f"ulimit -c 0; ulimit -f {limits.file_bytes // 512}; ulimit -n {limits.open_files}; "
        f'ulimit -t {cpu_seconds(limits)}; cd "$0" && exec "$@"'
    )


def _allow(operations: str, filters: Iterable[str]) -> str:
    return f"(allow {operations}\n" + "\n".join(f"  {each}" for each in filters) + ")"


def _subpath(path: Path | str) -> str:
    return f"(subpath {quoted(str(path))})"


def _literal(path: Path | str) -> str:
    return f"(literal {quoted(str(path))})"


def _regex(pattern: str) -> str:
    return f'#"{pattern}"'
