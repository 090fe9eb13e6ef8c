"""The lock is what pyproject.toml asks for and the app has of its extras: exact, with hashes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from locking import EXTRAS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "packaging"
MAC = {"sys_platform": "darwin", "platform_machine": "arm64", "python_version": "3.12"}
LINUX = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}


def locked(name: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Of a lock, by package: the requirement and how many hashes it has."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    found: dict[str, list[tuple[Requirement, int]]] = {}
    for block in re.split(r"\n(?=[A-Za-z])", text):
        if not block.startswith("#"):
            requirement = Requirement(block.split("\\\n")[0].strip())
            hashes = len(re.findall(r"--hash=sha256:[0-9a-f]{64}", block))
            found.setdefault(canonicalize_name(requirement.name), []).append((requirement, hashes))
    return found


def asked(name: str) -> list[Requirement]:
    """Of a .in file, or of the project."""
    if name == "pyproject.toml":
        project = tomllib.loads((REPOSITORY / name).read_text(encoding="utf-8"))["project"]
        extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
        return [Requirement(line) for line in [*project["dependencies"], *extras]]
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["requirements.lock", "tools.lock"])
def test_every_package_is_exact_and_has_hashes(name: str) -> None:
    packages = locked(name)
    assert packages
    for entries in packages.values():
        for requirement, hashes in entries:
            assert [one.operator for one in requirement.specifier] == ["=="], requirement
            assert requirement.url is None
            assert hashes > 0, requirement


@pytest.mark.parametrize("system", [MAC, LINUX], ids=["mac", "linux"])
@pytest.mark.parametrize(
    ("source", "lock"),
    [
        ("pyproject.toml", "requirements.lock"),
        ("tools.in", "tools.lock"),
    ],
)
def test_what_is_asked_for_is_locked(source: str, lock: str, system: dict[str, str]) -> None:
    packages = locked(lock)
    for requirement in asked(source):
        if requirement.marker is not None and not requirement.marker.evaluate(system):
            continue
        here = [
            entry
            for entry, _ in packages.get(canonicalize_name(requirement.name), [])
            if entry.marker is None or entry.marker.evaluate(system)
        ]
        assert len(here) == 1, f"{requirement}: run `make -C packaging lock`"
        (exact,) = here[0].specifier
        assert requirement.specifier.contains(exact.version), (
            f"{requirement} is locked as {exact}: run `make -C packaging lock`"
        )


def test_pyobjc_is_one_version_throughout() -> None:
    versions = {
        str(requirement.specifier)
        for name, entries in locked("requirements.lock").items()
        for requirement, _ in entries
        if name.startswith("pyobjc-")
    }
    assert len(versions) == 1


def test_only_the_tools_have_what_builds_the_app() -> None:
    assert {"py2app", "uv"} <= locked("tools.lock").keys()
    assert not {"py2app", "setuptools", "torch", "pip"} & locked("requirements.lock").keys()
