"""`make lock`: exact versions with hashes, for macOS and Linux, from what is asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

from environment import PACKAGING, PYTHON_VERSION, REPOSITORY, uv

HEADER = "# Made by `make -C packaging lock`. Exact, with hashes, for macOS and Linux.\n"

EXTRAS = ("window", "mcp")
"""Of the project: who has the app cannot install anything into it."""


def lock(asked: Path, into: Path, extras: tuple[str, ...] = ()) -> None:
    """Resolve `asked` anew. Raises subprocess.CalledProcessError where there is no solution."""
    with_extras = [word for extra in extras for word in ("--extra", extra)]
    subprocess.run(
        [
            *(uv(), "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
            *("--python-version", PYTHON_VERSION, "--no-header", "--no-emit-index-url"),
            *("--no-emit-find-links", "--no-annotate", "--upgrade", "--output-file", into),
            *(*with_extras, asked),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    into.write_text(HEADER + into.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    lock(REPOSITORY / "pyproject.toml", PACKAGING / "requirements.lock", EXTRAS)
    lock(PACKAGING / "tools.in", PACKAGING / "tools.lock")
