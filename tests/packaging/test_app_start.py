"""The app's first script, what is passed on, and what is left to the owner's hands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("macholib", reason="macholib is missing: pip install 'minicpm5-mac[packaging]'")

from by_hand import by_hand
from shipping import checksum

import minicpm5_mac

FOLDER = Path(__file__).parents[2] / "packaging"
# Run as py2app's __boot__.py runs it, and then ask what a child of ours would inherit.
ASK = """
import os, runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as ended:
    print("ended:", ended.code)
print("left:", sorted(name for name in os.environ if name.startswith("PYTHON") or "PATH" in name))
"""


@pytest.mark.parametrize("words", [["--version"], ["-psn_0_12345", "--version"]])
def test_with_words_it_is_the_command_line_in_the_users_own_environment(words: list[str]) -> None:
    stub = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RESOURCEPATH": "/Applications/MiniCPM5.app/Contents/Resources",
        "EXECUTABLEPATH": "/Applications/MiniCPM5.app/Contents/MacOS/MiniCPM5",
        "ARGVZERO": "MiniCPM5",
        "SSL_CERT_FILE": "/Applications/MiniCPM5.app/Contents/Resources/openssl.ca/cert.pem",
    }
    ended = subprocess.run(
        [sys.executable, "-c", ASK, FOLDER / "MiniCPM5.py", *words],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **stub},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines() == [
        f"minicpm5-mac {minicpm5_mac.__version__}",
        "ended: 0",
        "left: ['PATH']",
    ]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_no_script_names_a_place_of_the_machine_that_wrote_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    places = {os.fspath(FOLDER.parent), os.fspath(Path.home()), "/Users/", "/home/", sys.prefix}
    assert [place for place in places - {"/root"} if place in text] == []


def test_the_checksum_is_what_shasum_reads(tmp_path: Path) -> None:
    image = tmp_path / "MiniCPM5-0.1.0-arm64.dmg"
    image.write_bytes(b"image" * 1000)
    written = checksum(image)
    assert written.name == "MiniCPM5-0.1.0-arm64.dmg.sha256"
    subprocess.run(["sha256sum", "-c", written.name], cwd=tmp_path, check=True, capture_output=True)
    image.write_bytes(b"other")
    assert subprocess.run(["sha256sum", "-c", written.name], cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("notarised", [True, False])
def test_the_list_for_the_owner_is_whole(notarised: bool) -> None:
    text = by_hand(Path("/tmp/MiniCPM5.app"), notarised=notarised)
    numbers = [int(found) for found in re.findall(r"^ ?(\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, 15))
    assert "{" not in text
    assert ("xattr" in text) is not notarised


def test_the_readme_has_the_list_too() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    text = by_hand(Path("build/app/MiniCPM5.app"), notarised=False)
    steps = text[text.index(" 1. ") :]
    assert f"```text\n{steps}\n```" in readme


@pytest.mark.skipif(sys.platform == "darwin", reason="on macOS it builds the app")
def test_elsewhere_than_on_a_mac_it_says_what_can_be_done() -> None:
    ended = subprocess.run(
        [sys.executable, FOLDER / "make_app.py"], capture_output=True, text=True, cwd=FOLDER
    )
    assert ended.returncode != 0
    assert "Apple Silicon" in ended.stderr
    assert "make check-linux" in ended.stderr
    assert "Traceback" not in ended.stderr
