"""Reads macOS sandbox profiles and decides requests: a model of Seatbelt, for tests on Linux.

What the kernel really does is settled on a Mac by `minicpm5-mac doctor`. Where reports disagree,
both readings are computed: whether the last matching rule wins over all operations or only within
the most specific operation that has a match, and whether paths are compared in folded case.
Names of operations and filters that the model does not know are errors: a typo in a profile is
one on the Mac as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Symbol(str):
    """A bare word, as opposed to a string."""


@dataclass(frozen=True)
class Request:
    """What a process asks for. path is absolute; name a service, sysctl or semaphore."""

    operation: str
    path: str | None = None
    name: str | None = None
    target: str = "others"
    vnode: str = "REGULAR-FILE"
    remote: str | None = None


@dataclass(frozen=True)
class Decision:
    """Allowed or not, by each reading of rule order."""

    specific_first: bool
    last_match: bool


Tree = list
_Match = Callable[[Request], bool]
_TOKEN = re.compile(
    r'\s+|;[^\n]*|(?P<paren>[()])|#"(?P<raw>(?:[^"\\]|\\.)*)"|"(?P<text>(?:[^"\\]|\\.)*)"'
    r"|(?P<symbol>[^\s()\";]+)"
)
LONGEST_STRING = 1025  # bytes; sandbox-exec refuses more (srt)

OPERATIONS = {
    *("file-read-data", "file-read-metadata", "file-read-xattr", "file-test-existence"),
    *("file-write-data", "file-write-create", "file-write-unlink", "file-write-mode"),
    *("file-write-xattr", "file-write-owner", "file-write-flags", "file-write-times"),
    *("file-write-setugid", "file-map-executable", "file-ioctl", "file-mount", "file-mknod"),
    *("process-exec", "process-fork", "process-info-pidinfo", "process-info-listpids"),
    *("signal", "sysctl-read", "sysctl-write", "mach-lookup", "mach-register"),
    *("mach-priv-task-port", "mach-priv-host-port", "ipc-posix-sem", "ipc-posix-shm-read-data"),
    *("network-outbound", "network-inbound", "network-bind", "system-socket", "lsopen"),
    *("appleevent-send", "iokit-open", "user-preference-read", "user-preference-write"),
    *("pseudo-tty", "job-creation", "authorization-right-obtain", "device-camera"),
    *("device-microphone", "distributed-notification-post", "system-privilege", "nvram-set"),
}


def parse(text: str) -> Tree:
    """The top-level forms as nested lists of Symbol and str. Raises SyntaxError."""
    stack: list[Tree] = [[]]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise SyntaxError(f"at {at}: {text[at : at + 20]!r}")
        at = token.end()
        if token["paren"] == "(":
            stack.append([])
        elif token["paren"] == ")":
            if len(stack) == 1:
                raise SyntaxError("a closing parenthesis too many")
            form = stack.pop()
            stack[-1].append(form)
        elif token["symbol"] is not None:
            stack[-1].append(Symbol(token["symbol"]))
        elif token["raw"] is not None or token["text"] is not None:
            string = token["raw"] if token["raw"] is not None else _unescaped(token["text"])
            if len(string.encode()) > LONGEST_STRING:
                raise SyntaxError("a string is too long")
            stack[-1].append(string)
    if len(stack) != 1:
        raise SyntaxError("a parenthesis is not closed")
    return stack[0]


class Profile:
    """Compiled rules. fold: whether literal and subpath compare in folded case."""

    def __init__(self, forms: Tree, *, fold: bool = False) -> None:
        self._fold = str.casefold if fold else str
        self._rules: dict[str, list[tuple[int, bool, _Match]]] = {}
        self._default: bool | None = None
        for number, form in enumerate(forms):
            self._add(number, form)
        if self._default is None:
            raise SyntaxError("no default")

    def decide(self, request: Request) -> Decision:
        assert request.operation in OPERATIONS, request.operation
        specific: bool | None = None
        latest, last = -1, self._default
        for operation in chain(request.operation):
            matched = [
                (number, allow)
                for number, allow, match in self._rules.get(operation, ())
                if match(request)
            ]
            if matched:
                if specific is None:
                    specific = matched[-1][1]
                if matched[-1][0] > latest:
                    latest, last = matched[-1]
        assert self._default is not None
        assert last is not None
        return Decision(self._default if specific is None else specific, last)

    def _add(self, number: int, form: Tree) -> None:
        head, *rest = form
        if head == "version":
            return
        if head not in ("allow", "deny"):
            raise SyntaxError(f"unknown form {head}")
        operations = [item for item in rest if isinstance(item, Symbol)]
        filters = [self._filter(item) for item in rest if isinstance(item, list)]
        if operations == ["default"]:
            self._default = head == "allow"
            return
        for operation in operations:
            if not any(operation in chain(known) for known in OPERATIONS):
                raise SyntaxError(f"unknown operation {operation}")
            self._rules.setdefault(operation, []).append((number, head == "allow", _any(filters)))

    def _filter(self, form: Tree) -> _Match:
        head, *rest = form
        if head in ("require-all", "require-any", "require-not"):
            inner = [self._filter(item) for item in rest]
            if head == "require-all":
                return lambda request: all(match(request) for match in inner)
            if head == "require-any":
                return lambda request: any(match(request) for match in inner)
            (negated,) = inner
            return lambda request: not negated(request)
        if head == "remote":
            return lambda request: request.remote is not None
        (value,) = rest
        fold = self._fold
        if head == "literal":
            wanted = fold(value)
            return lambda request: request.path is not None and fold(request.path) == wanted
        if head == "subpath":
            prefix = fold(value).rstrip("/") + "/"
            return lambda r: r.path is not None and (fold(r.path) + "/").startswith(prefix)
        if head == "regex":
            searched = re.compile(value)
            return lambda r: r.path is not None and searched.search(r.path) is not None
        if head == "ipc-posix-name-regex":
            searched = re.compile(value)
            return lambda r: r.name is not None and searched.search(r.name) is not None
        if head in ("global-name", "sysctl-name"):
            return lambda request: request.name == value
        if head in ("global-name-prefix", "sysctl-name-prefix"):
            return lambda request: request.name is not None and request.name.startswith(value)
        if head == "target":
            return lambda request: request.target == value
        if head == "vnode-type":
            return lambda request: request.vnode == value
        raise SyntaxError(f"unknown filter {head}")


def _any(filters: list[_Match]) -> _Match:
    """A rule with several filters matches when one does; without any, always."""
    return lambda request: not filters or any(match(request) for match in filters)


def chain(operation: str) -> Iterator[str]:
    """The operation and the wildcards above it: file-read-data, file-read*, file*."""
    yield operation
    words = operation.removesuffix("*").split("-")
    for length in range(len(words), 0, -1):
        yield "-".join(words[:length]) + "*"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
