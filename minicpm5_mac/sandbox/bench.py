"""A throw-away place for the canary's probes, and the shape of policy it is made for."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from minicpm5_mac.sandbox.policy import Limits, Policy
from minicpm5_mac.sandbox.process import Ended, run
from minicpm5_mac.sandbox.worker_call import WorkerCall, run_worker
from minicpm5_mac.sandbox.wrapping import Wrapper

UNTOUCHED = "untouched"
ATTEMPTS = Path(__file__).with_name("attempts.py")


@dataclass(frozen=True)
class Shape:
    """What of a policy decides its translation, the paths aside. One verdict holds for it."""

    reads: bool
    writes: bool
    limits: Limits

    @classmethod
    def of(cls, policy: Policy) -> Shape:
        # The time a command gets is the caller's to choose, call by call.
        limits = replace(policy.limits, wall_seconds=Limits.wall_seconds, lasting=False)
        return cls(bool(policy.read), bool(policy.write), limits)


class Bench:
    """A throw-away place for one probe: a workspace, what lies around it, and a fake home."""

    def __init__(self, root: Path, shape: Shape, wrapper: Wrapper) -> None:
        self.workspace = root / "ws"
        self.beside = root / "ws-evil"
        self.outside = root / "outside.txt"
        self.secret = root / "home" / ".ssh" / "canary"
        self.granted_read = root / "granted-read"
        self.granted_write = root / "granted-write"
        (self.workspace / ".git" / "hooks").mkdir(parents=True)
        (self.workspace / "mine.txt").write_text("mine")
        (self.workspace / "empty").mkdir()
        self.outside.write_text(UNTOUCHED)
        self.secret.parent.mkdir(parents=True)
        self.secret.write_text("the canary's secret")
        for folder in (self.granted_read, self.granted_write):
            folder.mkdir()
            (folder / "there.txt").write_text("there")
        self.shape = shape
        self.wrapper = wrapper
        self.policy = Policy(
            self.workspace,
            read=(self.granted_read,) if shape.reads else (),
            write=(self.granted_write,) if shape.writes else (),
            limits=replace(shape.limits, wall_seconds=min(20.0, shape.limits.wall_seconds)),
        )

    def attempt(self, *steps: Sequence[object], policy: Policy | None = None) -> list:
        """Outcomes of steps of attempts.py; a worker that did not answer is an outcome too."""
        call = WorkerCall(ATTEMPTS, "attempt", {"steps": [_plain(step) for step in steps]})
        result = run_worker(policy or self.policy, call, self.wrapper)
        if result.error is not None:
            return [f"{result.error.kind}: {result.error.message}"] * len(steps)
        return result.value

    def command(self, argv: Sequence[str], **limits: float) -> Ended:
        policy = replace(self.policy, limits=replace(self.policy.limits, **limits))
        return run(policy, argv, wrapper=self.wrapper)


@contextlib.contextmanager
def bench(shape: Shape, wrapper: Wrapper) -> Iterator[Bench]:
    """A fresh bench, removed afterwards."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="minicpm5-canary-")))
    try:
        yield Bench(root, shape, wrapper)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _plain(step: Sequence[object]) -> list[object]:
    return [str(value) if isinstance(value, Path) else value for value in step]
