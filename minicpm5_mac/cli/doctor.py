"""`minicpm5-mac doctor`: what this machine allows, checked by trying, a row per finding.

A check is a function that yields rows, and is listed in CHECKS. It imports what it examines
inside, and what goes wrong with it is a row, never the end of the others.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from minicpm5_mac.failure import Failure

OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Row:
    """One finding. expected and seen are words for the user; ok whether all is well."""

    name: str
    expected: str
    seen: str
    ok: bool


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        help="check what this machine allows: Python, the tools' sandbox",
        description="Check this machine by trying: each line says what was expected and seen. "
        "The sandbox probes take some seconds and always run anew.",
        epilog="exit status: 0 when every line is ok, else 1",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the rows as they come. Returns 1 when one is not ok."""
    wrong = 0
    for check in CHECKS:
        for row in _rows(check):
            wrong += not row.ok
            print(_line(row), flush=True)
    print(f"{wrong} not ok" if wrong else "all ok")
    return 1 if wrong else 0


def python_version() -> Iterator[Row]:
    oldest = ".".join(map(str, OLDEST_PYTHON))
    yield Row(
        "Python",
        f"{oldest} or newer",
        f"{platform.python_version()} ({sys.executable})",
        sys.version_info >= OLDEST_PYTHON,
    )


def sandbox() -> Iterator[Row]:
    """The canary: every probe, through each back end of this system until one passes."""
    from minicpm5_mac.sandbox.bench import Shape
    from minicpm5_mac.sandbox.canary import each_result
    from minicpm5_mac.sandbox.policy import Limits
    from minicpm5_mac.sandbox.wrapping import back_ends, choose_back_end

    shape = Shape(reads=True, writes=True, limits=Limits())
    for name, wrapper in back_ends().items():
        passed = []
        for result in each_result(shape, wrapper):
            passed.append(result.ok)
            title = f"sandbox {result.number:2}: {result.title}"
            yield Row(title, result.expected, result.seen, result.ok)
        seen = f"{sum(passed)} of {len(passed)}"
        yield Row(f"sandbox ({name})", "all probes right", seen, all(passed))
        if all(passed):
            choose_back_end(name)
            return


CHECKS: tuple[Callable[[], Iterator[Row]], ...] = (python_version, sandbox)


def _rows(check: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    name = check.__name__.replace("_", " ")
    try:
        yield from check()
    except Failure as failure:
        yield Row(name, "works", str(failure).replace("\n", " "), False)
    except Exception as error:
        yield Row(name, "works", f"{type(error).__name__}: {error}", False)


def _line(row: Row) -> str:
    if row.ok:
        return f"ok     {row.name}: {row.seen}" + (
            f" (expected {row.expected})" if row.expected != row.seen else ""
        )
    return f"NOT OK {row.name}: expected {row.expected}, seen {row.seen}"
