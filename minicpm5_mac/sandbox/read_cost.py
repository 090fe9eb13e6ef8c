"""What the choke point costs: one small file read by a worker in the sandbox, and in this process.

`read` is also the tool that is measured: the worker loads this file, so that what it imports at
its top is part of the cost.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def read(path: str) -> str:
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def measure(folder: Path, calls: int) -> dict[str, list[float]]:
    """Seconds of each of `calls` reads, by kind. folder: an empty one, for the file."""
    from pathlib import Path
    from time import perf_counter

    from minicpm5_mac.sandbox.policy import Policy
    from minicpm5_mac.sandbox.worker_call import WorkerCall, run_worker

    file = folder.resolve() / "file.txt"
    file.write_text("a small file\n" * 100)
    policy = Policy(folder, writable=False)
    call = WorkerCall(Path(__file__), "read", {"path": str(file)})
    costs: dict[str, list[float]] = {"sandboxed": [], "in-process": []}
    expected = run_worker(policy, call).value  # the first start also starts the guard
    for _ in range(calls):
        for kind, once in (
            ("sandboxed", lambda: run_worker(policy, call).value),
            ("in-process", lambda: read(str(file))),
        ):
            began = perf_counter()
            value = once()
            costs[kind].append(perf_counter() - began)
            assert value == expected
    return costs
