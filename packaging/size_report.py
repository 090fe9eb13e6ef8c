"""What takes the room."""

from __future__ import annotations

from pathlib import Path

MEGABYTE = 1_000_000


def size(path: Path) -> int:
    """Bytes of a file or of all files below a folder, links not followed."""
    if path.is_symlink():
        return 0
    if path.is_file():
        return path.stat().st_size
    return sum(
        entry.stat().st_size
        for entry in path.rglob("*")
        if entry.is_file() and not entry.is_symlink()
    )


def size_report(folder: Path, lines: int = 14) -> str:
    """The largest entries of a folder, and the sum of all, in MB of 10^6 bytes."""
    sizes = sorted(((size(path), path.name) for path in folder.iterdir()), reverse=True)
    total = sum(bytes_ for bytes_, _ in sizes)
    rows = [f"{bytes_ / MEGABYTE:8.1f} MB  {name}" for bytes_, name in sizes[:lines]]
    rest = sum(bytes_ for bytes_, _ in sizes[lines:])
    rows.append(f"{rest / MEGABYTE:8.1f} MB  {max(len(sizes) - lines, 0)} others")
    return "\n".join([*rows, f"{total / MEGABYTE:8.1f} MB  all"])
