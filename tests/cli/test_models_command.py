"""`minicpm5-mac models` on the command line: what it prints, asks, and ends with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from minicpm5_mac.cli.main import main
from minicpm5_mac.locations import HOME_VARIABLE

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small llama file."""
    sys.path.insert(0, str(TESTS / "model"))
    from gguf_samples import Sample, byte_level_metadata, byte_level_tokenizer
    from tokenizers.pre_tokenizers import ByteLevel

    tokenizer = byte_level_tokenizer(ByteLevel(add_prefix_space=False))
    sample = Sample(tokenizer.get_vocab_size(), default_type="Q4_0")
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    return sample.write(path, byte_level_metadata(tokenizer, "gpt-2"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "home"


@pytest.fixture
def imported(gguf: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """An imported model named mine; what the command printed is taken away."""
    assert main(["models", "import", str(gguf), "--name", "mine"]) == 0
    return Path(capsys.readouterr().out.strip())


def test_without_models_the_list_says_how_to_get_one(capsys: pytest.CaptureFixture[str]):
    assert main(["models", "list"]) == 0
    assert "models pull" in capsys.readouterr().out
    assert main(["models", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_import_prints_the_folder_and_how_to_run_it(gguf: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["models", "import", str(gguf)]) == 0
    printed = capsys.readouterr()
    assert Path(printed.out.strip(), "model.safetensors").is_file()
    assert Path(printed.out.strip()).name == "small"  # the file's name
    assert "--model small" in printed.err
    assert main(["models", "import", str(gguf)]) == 3
    assert "there already" in capsys.readouterr().err
    assert main(["models", "import", str(gguf), "--replace"]) == 0


def test_list_and_path(imported: Path, capsys: pytest.CaptureFixture[str]):
    main(["models", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["MODEL", "SIZE", "FROM", "REVISION"]
    assert lines[1].split()[0] == "mine"
    main(["models", "list", "--json"])
    (model,) = json.loads(capsys.readouterr().out)
    assert (model["model"], model["source"], model["fault"]) == ("mine", "import", "")
    assert model["bytes"] == sum(path.stat().st_size for path in imported.iterdir())
    assert main(["models", "path", "mine"]) == 0
    assert capsys.readouterr().out == f"{imported}\n"


def test_info(imported: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("mine", str(imported)):
        assert main(["models", "info", name, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["path"] == str(imported)
        assert (facts["head_dim"], facts["kv_heads"], facts["layers"]) == (32, 2, 2)
        assert facts["quantization"] == "4-bit, group 32"
        assert facts["kv_bytes_per_token"] == 2 * 2 * 2 * 32 * 2
        assert facts["context_that_fits"] == facts["context"] == 256
    assert main(["models", "info", "mine"]) == 0
    assert "head dim" in capsys.readouterr().out


def test_a_damaged_model_is_listed_as_such(imported: Path, capsys: pytest.CaptureFixture[str]):
    weights = imported / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    assert main(["models", "list"]) == 0
    assert "unusable: model.safetensors is cut off" in capsys.readouterr().out
    assert main(["models", "info", "mine"]) == 3
    assert "cut off" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "gone", "code"),
    [("y\n", True, 0), ("YES\n", True, 0), ("\n", False, 1), ("no\n", False, 1)],
)
def test_remove_asks(
    typed: str, gone: bool, code: int, imported: Path, monkeypatch: pytest.MonkeyPatch
):
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert main(["models", "remove", "mine"]) == code
    assert imported.exists() is not gone


def test_remove_without_anybody_to_ask_needs_yes(
    imported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["models", "remove", "mine"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert imported.exists()
    assert main(["models", "remove", "mine", "--yes"]) == 0
    assert not imported.exists()


@pytest.mark.parametrize("action", ["path", "info", "remove"])
def test_a_model_that_is_not_here(action: str, capsys: pytest.CaptureFixture[str]):
    assert main(["models", action, "nothing"]) == 3
    assert "no model 'nothing'" in capsys.readouterr().err


def test_remove_takes_no_folder_of_the_users_own(
    imported: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["models", "remove", str(imported), "--yes"]) == 3
    assert imported.exists()
