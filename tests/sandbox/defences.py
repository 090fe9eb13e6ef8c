"""The Linux translation with one defence taken away, for tests that must then see a hole."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from minicpm5_mac.sandbox import linux
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.wrapping import Wrapped, Wrapper

Edit = Callable[[list[str], Policy], list[str]]


def edited(*edits: Edit) -> Wrapper:
    """The production translation, its bwrap command line changed."""

    def wrap(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
        wrapped = linux.wrap(policy, command, tmp)
        argv = list(wrapped.argv)
        for edit in edits:
            argv = edit(argv, policy)
        return replace(wrapped, argv=tuple(argv))

    return wrap


def without(option: str, *values: str) -> Edit:
    """Drop an option that is followed by `values`; an empty value stands for any."""

    def edit(argv: list[str], policy: Policy) -> list[str]:
        wanted = [value.replace("WS", str(policy.workspace)) for value in values]
        for at, word in enumerate(argv):
            following = argv[at + 1 : at + 1 + len(wanted)]
            fits = all(not w or w == f for w, f in zip(wanted, following, strict=True))
            if word == option and fits:
                return argv[:at] + argv[at + 1 + len(wanted) :]
        raise AssertionError(f"the translation has no {option} {values}")

    return edit


def instead(old: Sequence[str], new: Sequence[str]) -> Edit:
    """Put another option where one is; WS and UP stand for the workspace and its parent."""

    def filled(words: Sequence[str], policy: Policy) -> list[str]:
        places = {"WS": str(policy.workspace), "UP": str(policy.workspace.parent)}
        return [places.get(word, word) for word in words]

    def edit(argv: list[str], policy: Policy) -> list[str]:
        old_words, new_words = filled(old, policy), filled(new, policy)
        for at in range(len(argv)):
            if argv[at : at + len(old_words)] == old_words:
                return argv[:at] + new_words + argv[at + len(old_words) :]
        # A read-only policy translates to less; every other has what is looked for.
        assert not policy.writable, f"the translation has no {old}"
        return argv

    return edit


# The same processes as the host's, with the host's view of them.
host_processes: tuple[Edit, ...] = (
    without("--unshare-pid"),
    instead(("--proc", "/proc"), ("--ro-bind", "/proc", "/proc")),
)
no_filter = without("--seccomp", "")
everything_around: Edit = instead(("--bind", "WS", "WS"), ("--bind", "UP", "UP"))


def leaking_environment(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    wrapped = edited(without("--clearenv"))(policy, command, tmp)
    return replace(wrapped, environment={**os.environ, **wrapped.environment})


def open_input(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """Standard input that nobody writes to, and nobody closes."""
    wrapped = linux.wrap(policy, command, tmp)
    fifo = tmp / "fifo"
    os.mkfifo(fifo)
    argv = ("/bin/sh", "-c", 'exec "$@" 0<>"$0"', str(fifo), *wrapped.argv)
    return replace(wrapped, argv=argv)


def identity(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """No wrapper at all: the command as any program of the user runs."""
    start = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(policy.workspace))
    return Wrapped((*start, *command), {**os.environ, "TMPDIR": str(tmp)})
