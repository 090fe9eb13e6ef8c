"""`make app`, on a Mac with Apple Silicon: MiniCPM5.app from nothing, checked, in a disk image.

SIGN_IDENTITY="Developer ID Application: …"  signs with it; without, ad hoc.
NOTARY_PROFILE=NAME                          notarises, with what `xcrun notarytool
                                             store-credentials NAME` has stored.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig

from by_hand import by_hand
from check_bundle import report
from check_linux import run_all
from environment import BUILD, PYTHON_VERSION, make_environment
from info_plist import package_version
from py2app_build import APP, build
from shipping import checksum, disk_image, notarise
from signing import AD_HOC, sign


def main() -> int:
    """All steps in order. The first that fails ends it, with its words."""
    refuse_other_machines()
    identity = os.environ.get("SIGN_IDENTITY") or AD_HOC
    profile = os.environ.get("NOTARY_PROFILE")
    if profile and identity == AD_HOC:
        sys.exit("make_app.py: NOTARY_PROFILE needs a SIGN_IDENTITY: Apple takes nothing ad hoc.")
    environment = BUILD / "environment-macos"
    try:
        step("the packages of requirements.lock")
        make_environment(environment, for_macos=True)
        step("py2app")
        build(environment, [sys.executable, "py2app_setup.py", "-q", "py2app"])
        step(f"signing, {'ad hoc' if identity == AD_HOC else identity}")
        sign(APP, identity)
        step("what it holds")
        wrong = report(APP, mac=True)
        step("running it from inside")
        wrong += run_all(APP)
        # Whatever ran must have written nothing into it.
        subprocess.run(["codesign", "--verify", "--deep", "--strict", APP], check=True)
        if wrong:
            sys.exit(f"make_app.py: {wrong} checks failed; nothing is packed.")
        if profile:
            step("notarising")
            notarise(APP, profile, BUILD)
        step("the disk image")
        image = disk_image(APP, package_version(), BUILD)
        print(image, checksum(image), sep="\n")
    except subprocess.CalledProcessError as error:
        words = " ".join(os.fspath(word) for word in error.cmd)
        sys.exit(f"make_app.py: this failed (status {error.returncode}): {words}")
    print(by_hand(APP, notarised=bool(profile)))
    return 0


def step(name: str) -> None:
    """Say what comes next."""
    print(f"== {name}", flush=True)


def refuse_other_machines() -> None:
    """Ends with what is missing, before anything is downloaded."""
    if sys.platform != "darwin" or platform.machine() != "arm64":
        sys.exit(
            "make_app.py: the app is built on a Mac with Apple Silicon.\n"
            "Anywhere else, `make check-linux` and `make check-wheels` check what can be checked."
        )
    if sysconfig.get_python_version() != PYTHON_VERSION or not sysconfig.get_config_var(
        "PYTHONFRAMEWORK"
    ):
        sys.exit(
            f"make_app.py: Python {PYTHON_VERSION} from python.org is needed (a framework build).\n"
            "Install it, `make clean`, and say `make app PYTHON=/usr/local/bin/python3.12`."
        )


if __name__ == "__main__":
    sys.exit(main())
