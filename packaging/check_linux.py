"""`make check-linux`: py2app's build on Linux, and the app run from inside of that tree.

`--keep` takes the tree of the last run. `--without PACKAGE` takes one package away first, to show
that forgetting one is noticed. CI runs both, after the tests.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check_bundle import report
from environment import BUILD, REPOSITORY, make_environment
from finishing import library
from linux_build import build_on_linux
from py2app_build import APP
from runs_inside import runs

PATIENCE = 300.0


def main() -> int:
    """Build, look, run; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="do not build anew")
    parser.add_argument("--without", metavar="PACKAGE", help="run without this package")
    arguments = parser.parse_args()
    if not (arguments.keep and APP.is_dir()):
        environment = BUILD / "environment-linux"
        make_environment(environment, for_macos=False)
        build_on_linux(environment)
    if arguments.without is None:
        return 1 if report(APP, mac=False) + run_all(APP) else 0
    return planted(arguments.without)


def planted(package: str) -> int:
    """Whether a package that is not there is noticed: 0 where it is."""
    folder = library(APP) / package
    if not folder.is_dir():
        sys.exit(f"check_linux.py: the app holds no {package}")
    print(f"{package} is taken away on purpose: now a check must fail", flush=True)
    aside = BUILD / "taken-away"
    shutil.move(folder, aside)
    try:
        failed = run_all(APP, to_first_failure=True)
    finally:
        shutil.move(aside, folder)
    print(f"without {package} {'a check' if failed else 'NO check'} fails")
    return 0 if failed else 1


def run_all(app: Path, *, to_first_failure: bool = False) -> int:
    """Run each check in a clean environment; prints a line each; the number that failed."""
    failed = 0
    before = files(app)
    with tempfile.TemporaryDirectory() as folder:
        for run in runs(app, REPOSITORY / "tests" / "fixtures" / "tiny-minicpm5"):
            if failed and to_first_failure:
                break
            home = Path(folder, run.name.replace(" ", "-"))
            home.mkdir()
            variables = {
                "PATH": "/usr/bin:/bin",
                "HOME": str(home),
                "MINICPM5_MAC_HOME": str(home / "own"),
                "LANG": "C.UTF-8",
                "LD_LIBRARY_PATH": str(app / "Contents" / "Frameworks"),
                **run.variables,
            }
            try:
                ended = subprocess.run(
                    run.command,
                    env=variables,
                    cwd=home,
                    input=run.given,
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE,
                )
            except subprocess.TimeoutExpired:
                failed += 1
                print(f"FAILED  {run.name}: no end after {PATIENCE:.0f} s")
                continue
            if ended.returncode == 0 and run.must_print in ended.stdout:
                last = (ended.stdout.strip().splitlines() or [""])[-1]
                print(f"ok      {run.name}: {last[:100]}", flush=True)
            else:
                failed += 1
                words = f"{ended.stdout}{ended.stderr}".strip().splitlines()[-6:]
                print(f"FAILED  {run.name} (status {ended.returncode})", *words, sep="\n        ")
    written = sorted(path for path, when in files(app).items() if before.get(path) != when)
    if written:
        failed += 1
        print("FAILED  nothing written into the app", *written[:6], sep="\n        ")
    return failed


def files(app: Path) -> dict[str, int]:
    """Every file of the app and when it was written: a signed app must stay as it is."""
    return {str(path): path.lstat().st_mtime_ns for path in app.rglob("*") if path.is_file()}


if __name__ == "__main__":
    sys.exit(main())
