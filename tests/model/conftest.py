"""Fixtures of the model tests: a home of their own, one small model to fetch, break and load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gguf_samples import Sample, byte_level_metadata, byte_level_tokenizer
from local_server import LocalServer
from tokenizers.pre_tokenizers import ByteLevel

from minicpm5_mac.locations import HOME_VARIABLE
from minicpm5_mac.model.gguf_import.folder import write_model_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of the program's folders, moved below a temporary one."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def small_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Q4_1 file with a Q8_0 embedding, tied, as the demo model's is."""
    tokenizer = byte_level_tokenizer(ByteLevel(add_prefix_space=False))
    sample = Sample(
        tokenizer.get_vocab_size(),
        default_type="Q4_1",
        types={"token_embd": "Q8_0"},
        tied=True,
    )
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    return sample.write(path, byte_level_metadata(tokenizer, "gpt-2"))


@pytest.fixture(scope="session")
def small_model(small_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder made of it. Copy it before changing anything."""
    folder = tmp_path_factory.mktemp("small-model")
    write_model_folder(small_gguf, folder)
    return folder


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A web server of this test's own."""
    server = LocalServer()
    yield server
    server.close()
