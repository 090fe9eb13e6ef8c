"""What the macOS profile must allow and deny: the rules once more, in Python, and requests to try.

Written apart from the translation, from the design note: a request is put to both, and every
difference is a fault of one of them.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from sbpl_evaluator import Profile, Request, chain

from minicpm5_mac.sandbox.macos import MACH_SERVICES, SYSCTL_PREFIXES, SYSCTLS
from minicpm5_mac.sandbox.protected import PROTECTED_NAMES

SYSTEM = (
    *("/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes"),
    *("/usr", "/bin", "/sbin", "/Library/Apple", "/Library/Developer/CommandLineTools"),
    "/Applications/Xcode.app/Contents/Developer",
    *("/opt/homebrew/bin", "/opt/homebrew/sbin", "/opt/homebrew/lib", "/opt/homebrew/libexec"),
    *("/opt/homebrew/opt", "/opt/homebrew/Cellar", "/opt/homebrew/share"),
    *("/opt/homebrew/include", "/opt/homebrew/Frameworks"),
)
DATA = (
    *("/private/etc", "/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select"),
    *("/private/var/db/xcode_select_link", "/dev/fd"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")

FORBIDDEN_SERVICES = (
    "com.apple.SecurityServer",
    "com.apple.securityd",
    "com.apple.securityd.xpc",
    "com.apple.securityd.general",
    "com.apple.secd",
    "com.apple.security.agent",
    "com.apple.security.keychaind",
    "com.apple.trustd",
    "com.apple.trustd.agent",
    "com.apple.lsd.mapdb",
    "com.apple.lsd.open",
    "com.apple.coreservices.launchservicesd",
    "com.apple.coreservices.appleevents",
    "com.apple.coreservices.quarantine-resolver",
    "com.apple.pasteboard.1",
    "com.apple.tccd",
    "com.apple.tccd.system",
    "com.apple.windowserver.active",
    "com.apple.WindowServer",
    "com.apple.dnssd.service",
    "com.apple.mDNSResponder",
    "com.apple.cfprefsd.daemon",
    "com.apple.cfprefsd.agent",
    "com.apple.system.opendirectoryd.api",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.distributed_notifications@Uv3",
    "com.apple.FSEvents",
    "com.apple.diskarbitrationd",
    "com.apple.usernoted.client",
    "com.apple.logd",
    "org.example.unknown",
)
FORBIDDEN_SYSCTLS = (
    "kern.procargs2",
    "kern.proc.all",
    "kern.bootargs",
    "net.inet.ip.forwarding",
    "hw.uuid",
    "hw.optional.other",
    "security.mac.sandbox.sentinel",
    "vm.swapusage",
    "machdep.cpu.other",
    "sysctl.other",
)
FORBIDDEN_OPERATIONS = (
    *("network-outbound", "network-inbound", "network-bind", "system-socket", "lsopen"),
    *("appleevent-send", "iokit-open", "user-preference-read", "user-preference-write"),
    *("pseudo-tty", "job-creation", "authorization-right-obtain", "device-camera"),
    *("device-microphone", "distributed-notification-post", "system-privilege", "nvram-set"),
    *("mach-register", "mach-priv-task-port", "mach-priv-host-port", "sysctl-write"),
    *("file-mount", "file-mknod", "ipc-posix-shm-read-data"),
)
SECRETS = (
    "/Users/me/.ssh/id_rsa",
    "/Users/me/.ssh/agent/s.123",
    "/Users/me/.zshrc",
    "/Users/me/Library/Keychains/login.keychain-db",
    "/Users/me/Library/Messages/chat.db",
    "/Users/other/x",
    "/Users",
    "/Library/Keychains/System.keychain",
    "/Library/Preferences/x.plist",
    "/System/Volumes/Data/Users/me/.ssh/id_rsa",
    "/System/Volumes/Data",
    "/Volumes/other/x",
    "/private/var/root/x",
    "/private/var/db/other",
    "/private/tmp/x",
    "/private/var/run/docker.sock",
    "/var/run/docker.sock",
    "/private/var/folders/ab/cd/T/other",
    "/opt/homebrew/var/postgres/x",
    "/opt/homebrew/etc/x",
    "/Applications/Safari.app/Contents/x",
    *("/dev/tty", "/dev/disk0", "/dev/ptmx", "/cores/x", "/.file", "/opt/x", "/tmp/x", "/etc/x"),
)
READS = ("file-read-data", "file-read-xattr")
EXECUTES = ("process-exec", "file-map-executable")
LOOKS = ("file-read-metadata", "file-test-existence")
WRITES = ("file-write-create", "file-write-unlink", "file-write-data", "file-write-mode")
HARMLESS = (
    "file",
    "a/b.txt",
    "a.git",
    ".gitignore",
    ".github/x.yml",
    "résumé.txt",
    "漢字.md",
    "x.profile",
    ".env",
    "git/hooks",
    "ends.",
    unicodedata.normalize("NFD", "é"),
)


@dataclass(frozen=True)
class Place:
    """A policy's folders as on a Mac; all resolved."""

    workspace: str = "/Users/me/proj"
    write: str = "/Volumes/disk/out"
    read: str = "/Users/me/docs"
    tmp: str = "/private/var/folders/ab/cd/T/minicpm5-run-1"
    program: tuple[str, ...] = ("/Users/me/.local/share/uv/python/cpython-3.12", "/Users/me/app")
    pinned: str = "/Users/me/proj/tools/venv"

    @property
    def programs(self) -> tuple[str, ...]:
        return (*self.program, self.pinned)

    @property
    def executable(self) -> tuple[str, ...]:
        return (*SYSTEM, *self.programs, self.workspace, self.write, self.read, self.tmp)

    @property
    def readable(self) -> tuple[str, ...]:
        return (*self.executable, *DATA)


def allowed(place: Place, request: Request) -> bool:
    """The rules: what a process in the sandbox may."""
    operation, path = request.operation, request.path or ""
    if operation in READS:
        return path == "/" or within(path, place.readable) or path in DEVICES
    if operation in LOOKS:
        above = {str(up) for each in place.readable for up in PurePosixPath(each).parents}
        known = (above - {"/"}) | {"/tmp", "/var", "/etc"}
        # Looking at the root is part of reading it; asking whether it exists is of no use.
        at_root = path == "/" and operation == "file-read-metadata"
        return at_root or within(path, place.readable) or path in DEVICES or path in known
    if operation in EXECUTES:
        return within(path, place.executable)
    if operation in WRITES:
        if path == "/dev/null":
            return operation == "file-write-data" and request.vnode == "CHARACTER-DEVICE"
        return within(path, (place.tmp,)) or _writable(place, path)
    if operation in ("signal", "process-info-pidinfo"):
        return request.target == "same-sandbox"
    if operation == "process-fork":
        return True
    if operation == "mach-lookup":
        return request.name in MACH_SERVICES
    if operation == "sysctl-read":
        return request.name in SYSCTLS or (request.name or "").startswith(SYSCTL_PREFIXES)
    if operation == "ipc-posix-sem":
        return (request.name or "").startswith(("/mp-", "/loky-"))
    assert operation in FORBIDDEN_OPERATIONS, operation
    return False


def _writable(place: Place, path: str) -> bool:
    for root in (place.workspace, place.write):
        if path.startswith(f"{root}/"):
            components = path.split("/")
            above_pinned = place.pinned.startswith(f"{path}/")
            pinned = within(path, (place.pinned,)) or above_pinned
            return not pinned and not any(map(_protected, components))
    return False


def _protected(component: str) -> bool:
    visible = "".join(c for c in component if c not in INVISIBLE)
    return visible.casefold() in PROTECTED_NAMES


INVISIBLE = "\u200c\u200d\u202e\ufeff"


def within(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def requests(place: Place) -> Iterator[Request]:
    """Requests around every border of the rules."""
    around = {"/", *SECRETS, *DEVICES, *(f"{device}/x" for device in DEVICES)}
    for root in place.readable:
        parent = str(PurePosixPath(root).parent)
        around |= {root, f"{root}/x", f"{root}/a/b", f"{root}-evil/x", parent}
        around |= {f"{parent}/canary-sibling", f"{parent}/canary-sibling/x"}
    paths = sorted(around)
    for operation in (*READS, *LOOKS, *EXECUTES, *WRITES):
        for path in paths:
            yield Request(operation, path)
    for operation in WRITES:
        for path in ("/dev/null", "/dev/null/x", "/dev/disk0"):
            yield Request(operation, path, vnode="CHARACTER-DEVICE")
    for root in (place.workspace, place.write):
        for name in (*HARMLESS, *_spellings()):
            for path in (name, f"{name}/x", f"deep/{name}/hooks/x"):
                yield Request("file-write-create", f"{root}/{path}")
            yield Request("file-write-unlink", f"{root}/{name}")
    for path in ("tools", "tools/venv", "tools/venv/bin/python", "tools/venv2/x", "tools/x"):
        for operation in WRITES:
            yield Request(operation, f"{place.workspace}/{path}")
    for target in ("self", "others", "children", "same-sandbox"):
        for operation in ("signal", "process-info-pidinfo"):
            yield Request(operation, target=target)
    yield Request("process-fork")
    for name in (*MACH_SERVICES, *FORBIDDEN_SERVICES):
        yield Request("mach-lookup", name=name)
    for name in (*SYSCTLS, *FORBIDDEN_SYSCTLS, *(f"{each}x" for each in SYSCTL_PREFIXES)):
        yield Request("sysctl-read", name=name)
    for name in ("/mp-k3x9", "/loky-1-abc", "/other", "/evil/mp-1", "apple.shm.notification"):
        yield Request("ipc-posix-sem", name=name)
    for operation in FORBIDDEN_OPERATIONS:
        yield Request(operation, path="/dev/x", name="x", remote="127.0.0.1:80")


def _spellings() -> Iterator[str]:
    for name in PROTECTED_NAMES:
        yield from (name, name.upper(), name.title(), name.swapcase())
        yield name.replace("s", "ſ").replace("k", "\u212a")
        yield from (f"{name[:3]}\u200c{name[3:]}", f"\ufeff{name}", f"{name}\u200d")


@functools.cache
def expected(place: Place) -> dict[str, tuple[tuple[Request, bool], ...]]:
    """Per operation, every request with what the rules say."""
    found: dict[str, tuple[tuple[Request, bool], ...]] = {}
    for request in requests(place):
        known = found.get(request.operation, ())
        found[request.operation] = (*known, (request, allowed(place, request)))
    return found


def differences(forms: list, place: Place, above: set[str] | None = None) -> Iterator[str]:
    """Where a profile and the rules disagree, in any reading of rule order and of case.

    above: only requests for these operations or what they stand for (`file-read*`); None: all.
    """
    for fold in (False, True):
        profile = Profile(forms, fold=fold)
        for operation, pairs in expected(place).items():
            if above is not None and above.isdisjoint(chain(operation)):
                continue
            for request, may in pairs:
                decision = profile.decide(request)
                if decision.specific_first is not may or decision.last_match is not may:
                    yield f"{request} may: {may}, profile: {decision}, fold: {fold}"
