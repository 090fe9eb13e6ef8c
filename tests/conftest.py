"""Shared by all tests: nothing of the user's is touched, and the tiny model is at hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from minicpm5_mac.model import openblas

FIXTURES = Path(__file__).parent / "fixtures"
TINY_MODEL = FIXTURES / "tiny-minicpm5"
SHARED = Path(__file__).parents[2] / "shared"

sys.path.insert(0, str(FIXTURES))  # `from tiny.prompts import prompt`
openblas.preload()  # before any test imports MLX


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own configuration, data, cache and log folders."""
    home = tmp_path / "minicpm5-mac-home"
    monkeypatch.setenv("MINICPM5_MAC_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """The folder of our own model in MiniCPM5's format."""
    return Path(os.environ.get("MINICPM5_TINY_MODEL", TINY_MODEL))


@pytest.fixture
def shared() -> Path:
    """The project's shared material; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here: it holds the model's real template and cases")
    return SHARED
