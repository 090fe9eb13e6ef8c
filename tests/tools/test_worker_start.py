"""What a call loads before it does anything: its start is paid on every call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import minicpm5_mac
from minicpm5_mac.tools.built_in import built_in_tools

PARENT = Path(minicpm5_mac.__file__).parents[1]
HEAVY = {"re", "typing", "enum", "dataclasses", "inspect", "json", "collections", "pathlib"}


def loaded(tool: str) -> set[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(PARENT)!r}); "
        f"import minicpm5_mac.tools.{tool}; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("tool", ["read_file", "list_dir"])
def test_reading_loads_nothing_that_takes_long(tool):
    assert not loaded(tool) & HEAVY


@pytest.mark.parametrize("tool", [t.name for t in built_in_tools() if t.kind != "command"])
def test_a_tool_needs_nothing_that_is_installed(tool):
    modules = loaded(tool)
    ours = {"minicpm5_mac", "minicpm5_mac.tools", "minicpm5_mac.sandbox"}
    known = {*sys.stdlib_module_names, *ours, "__main__"}
    foreign = {m for m in modules if m.split(".")[0] not in known}
    assert not foreign
    inside = {m for m in modules if m.startswith("minicpm5_mac.")}
    assert all(m in ours or m.startswith("minicpm5_mac.tools.") or
               m == "minicpm5_mac.sandbox.protected" for m in inside)  # fmt: skip
