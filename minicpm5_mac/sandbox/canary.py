"""Whether the sandbox holds, found out by trying: the gate in front of every tool.

All probes run through the production wrapper on throw-away folders. One wrong result, crash or
timeout and there are no tools, with the reason shown: fail closed. A pass is remembered for the
shape of policy, the operating system's build, this program's version and code, and the back end;
a failure is not, so that what was fixed is seen at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from minicpm5_mac import __version__, locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.bench import Shape, bench
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.probes import Probe, probes
from minicpm5_mac.sandbox.wrapping import Wrapper, back_ends, choose_back_end


@dataclass(frozen=True)
class ProbeResult:
    """One probe's outcome. number, title, expected: see probes.py."""

    number: int
    title: str
    expected: str
    seen: str
    ok: bool


@dataclass(frozen=True)
class Verdict:
    """Whether tools may run; `reason` is for the user, empty when they may.

    results is empty where a remembered pass was found, or where no probe could start.
    """

    ok: bool
    reason: str
    results: tuple[ProbeResult, ...] = ()


def verdict(policy: Policy) -> Verdict:
    """The remembered pass for this shape of policy, or the outcome of all probes (seconds).

    Where a system has several back ends, the first that passes is the one used from then on.
    """
    shape = Shape.of(policy)
    try:
        known = back_ends()
        remembered = _remembered(shape)
    except Failure as failure:
        return Verdict(False, failure.text)
    if remembered.exists():
        choose_back_end(json.loads(remembered.read_text())["back end"])
        return Verdict(True, "")
    failed: Verdict | None = None
    for name, wrapper in known.items():
        found = examine(shape, wrapper)
        if found.ok:
            choose_back_end(name)
            passed = {"back end": name, "results": [asdict(result) for result in found.results]}
            remembered.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            remembered.write_text(json.dumps(passed))
            return found
        failed = failed or found
    assert failed is not None
    return failed


def examine(shape: Shape, wrapper: Wrapper) -> Verdict:
    """Run every probe now."""
    results = tuple(each_result(shape, wrapper))
    wrong = [result for result in results if not result.ok]
    if not wrong:
        return Verdict(True, "", results)
    first = wrong[0]
    reason = (
        f"{len(wrong)} of {len(results)} sandbox probes went wrong; the first: {first.title}: "
        f"expected {first.expected}, seen {first.seen}"
    )
    return Verdict(False, reason, results)


def each_result(shape: Shape, wrapper: Wrapper) -> Iterator[ProbeResult]:
    """The probes' results in order, as they come."""
    # Two at a time: some of them only wait.
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda probe: result_of(probe, shape, wrapper), probes())


def result_of(probe: Probe, shape: Shape, wrapper: Wrapper) -> ProbeResult:
    """Run one probe on a bench of its own. Never raises: an error is a wrong result."""
    expected = probe.expected[sys.platform]
    try:
        with bench(shape, wrapper) as place:
            seen = probe.run(place)
    except Failure as failure:
        return ProbeResult(probe.number, probe.title, expected, failure.text, False)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return ProbeResult(probe.number, probe.title, expected, text, False)
    return ProbeResult(probe.number, probe.title, expected, seen.text, seen.ok)


def _remembered(shape: Shape) -> Path:
    parts = [
        __version__,
        *os.uname(),
        sys.executable,
        sys.version,
        str(os.getuid()),
        repr(shape),
        _code_digest(),
        _back_end_stamp(),
    ]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return locations.cache_dir() / "sandbox" / "canary" / f"{key}.json"


def _code_digest() -> str:
    """Of this package's source: a changed translation is a sandbox nobody has tried."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _back_end_stamp() -> str:
    if sys.platform == "linux":
        from minicpm5_mac.sandbox.linux import bubblewrap

        status = os.stat(bubblewrap())
        return f"{status.st_mtime_ns} {status.st_size}"
    with contextlib.suppress(OSError):
        # The build (as 25A354) changes with every security update, the kernel's version may not.
        return Path("/System/Library/CoreServices/SystemVersion.plist").read_text()
    return ""
