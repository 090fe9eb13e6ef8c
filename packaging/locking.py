"""`make lock`: exact versions with hashes, for macOS and Linux, from what is asked for."""

from __future__ import annotations

import subprocess
from pathlib import Path

from environment import PACKAGING, PYTHON_VERSION, REPOSITORY, uv

HEADER = "# Made by `make -C packaging lock`. Exact, with hashes, for macOS and Linux.\n"


def lock(asked: list[Path], into: Path) -> None:
    """Resolve `asked` anew. Raises subprocess.CalledProcessError where there is no solution."""
    subprocess.run(
        [
            *(uv(), "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
            *("--python-version", PYTHON_VERSION, "--no-header", "--no-emit-index-url"),
            *("--no-emit-find-links", "--no-annotate", "--upgrade", "--output-file", into, *asked),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    into.write_text(HEADER + into.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    pyproject = REPOSITORY / "pyproject.toml"
    lock([pyproject, PACKAGING / "requirements.in"], PACKAGING / "requirements.lock")
    lock([PACKAGING / "tools.in"], PACKAGING / "tools.lock")
