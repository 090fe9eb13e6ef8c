"""`make check-wheels`: the real macOS wheels of the lock, in the layout they have in the app.

Anywhere, also without a Mac. Downloads about 200 MB once.
"""

from __future__ import annotations

import sys

from environment import BUILD, MACOS, make_environment
from mach_o import faults, mach_o_files, metal_faults
from size_report import size_report


def main() -> int:
    """Install, read every Mach-O file, print what it is and what is wrong."""
    folder = BUILD / "environment-macos"
    make_environment(folder, for_macos=True)
    count = sum(1 for _ in mach_o_files(folder))
    wrong = [*metal_faults(folder), *faults(folder, MACOS)]
    print(size_report(folder))
    if count == 0:
        wrong.append("no Mach-O file at all")
    for fault in wrong:
        print(f"WRONG: {fault}", file=sys.stderr)
    if not wrong:
        print(f"{count} Mach-O files: all for arm64 and macOS {MACOS}, all find what they load;")
        print("one libmlx.dylib, and mlx.metallib beside it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
