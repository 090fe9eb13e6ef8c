"""`check_bundle.py MiniCPM5.app`: all that can be known of a bundle without opening its window."""

from __future__ import annotations

import sys
from pathlib import Path

from bundle_contents import content_faults, path_leaks, plist_faults
from environment import MACOS
from finishing import library
from mach_o import faults, mach_o_files, metal_faults
from size_report import MEGABYTE, size, size_report


def bundle_faults(app: Path, *, mac: bool) -> list[str]:
    """Everything wrong with a bundle, in words. mac: it was built on a Mac."""
    wrong = [*content_faults(app, mac=mac), *plist_faults(app), *path_leaks(app)]
    if mac:
        wrong += metal_faults(app)
        wrong += faults(app, MACOS, executable_folder=app / "Contents" / "MacOS")
    return wrong


def report(app: Path, *, mac: bool) -> int:
    """Print sizes and faults; the number of faults."""
    print(size_report(library(app)))
    print(f"{size(app) / MEGABYTE:8.1f} MB  {app.name}")
    if mac:
        print(f"{sum(1 for _ in mach_o_files(app))} Mach-O files read")
    wrong = bundle_faults(app, mac=mac)
    for fault in wrong:
        print(f"WRONG: {fault}", file=sys.stderr)
    return len(wrong)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "Contents").is_dir():
        sys.exit("usage: check_bundle.py MiniCPM5.app")
    sys.exit(1 if report(Path(sys.argv[1]), mac=sys.platform == "darwin") else 0)
