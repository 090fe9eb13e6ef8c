"""From a command to the command that runs it inside the sandbox: what a back end returns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import Policy


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Wrapped:
    """A command line ready to start.

    descriptors: passed to the child and closed in the parent once it started.
    status: the read end of bubblewrap's status pipe, or None where there is none.
    environment: of the outermost process; inside, the back end sets its own.
    finish: called once, after the last process is dead.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...] = ()
    status: int | None = None
    finish: Callable[[], None] = _nothing

    def abandon(self) -> None:
        """Give back everything when the command could not be started."""
        for descriptor in (*self.descriptors, *(() if self.status is None else (self.status,))):
            os.close(descriptor)
        self.finish()


class Wrapper(Protocol):
    """A back end: `policy` translated for `command`, whose run has `tmp` for itself."""

    def __call__(self, policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped: ...


def back_ends() -> dict[str, Wrapper]:
    """The back ends of this system by name, in the order the canary tries them.

    Raises Failure where there is none: fail closed.
    """
    if sys.platform == "darwin":
        from minicpm5_mac.sandbox import macos

        return {"own rules": macos.wrap, "system rules": macos.wrap_with_system_rules}
    if sys.platform == "linux":
        from minicpm5_mac.sandbox import linux

        return {"bubblewrap": linux.wrap}
    raise Failure(
        f"there is no sandbox for {sys.platform}",
        "Tools run on macOS and Linux only; chat works without them.",
    )


def production_wrapper() -> Wrapper:
    """The back end the canary chose, or the first one where it has not run yet.

    Raises Failure where this system has none.
    """
    known = back_ends()
    try:
        chosen = _choice().read_text()
    except OSError:
        chosen = ""
    return known.get(chosen) or next(iter(known.values()))


def choose_back_end(name: str) -> None:
    """Remember which back end passed. The folder is out of every sandbox's reach."""
    _choice().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _choice().write_text(name)


def _choice() -> Path:
    return locations.cache_dir() / "sandbox" / "back-end"


def unconfined(policy: Policy, command: Sequence[str], tmp: Path) -> Wrapped:
    """No sandbox: only for a user who turned it off, knowingly, for one session.

    Never a fallback. The parent-side limits still hold.
    """
    from minicpm5_mac.sandbox.environment import sandbox_environment

    environment = sandbox_environment(tmp, (Path("/"),), ("/usr/bin", "/bin"))
    start = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', str(policy.workspace))
    return Wrapped((*start, *command), {**environment, **dict(policy.environment)})
