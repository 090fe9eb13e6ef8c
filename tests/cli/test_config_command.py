"""`minicpm5-mac config`: the file's place, what holds, its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicpm5_mac import locations
from minicpm5_mac.cli.main import main
from minicpm5_mac.configuration.reading import parse_configuration


@pytest.fixture(autouse=True)
def config_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(locations.HOME_VARIABLE, str(tmp_path))
    file = locations.config_file()
    file.parent.mkdir(parents=True)
    return file


def test_path_is_where_the_file_is_read_from(config_file: Path, capsys):
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{config_file}\n"


def test_show_prints_what_holds_as_a_file_one_could_keep(config_file: Path, capsys):
    config_file.write_text('model = "demo"\n[prompts]\nShort = "Be brief."\n')
    assert main(["config", "show"]) == 0
    configuration, problems = parse_configuration(capsys.readouterr().out.encode())
    assert problems == ()
    assert configuration.model == "demo"
    assert configuration.prompts == {"Short": "Be brief."}


def test_show_still_shows_what_holds_beside_a_mistake(config_file: Path, capsys):
    config_file.write_text('model = "demo"\nkv_bits = 5\n')
    assert main(["config", "show"]) == 1
    shown = capsys.readouterr()
    assert 'model = "demo"' in shown.out
    assert "kv_bits = 16" in shown.out
    assert "line 2: kv_bits takes 16, 8, 4" in shown.err


def test_check_names_mistakes_and_fails(config_file: Path, capsys):
    config_file.write_text("\nmodell = 1\n")
    assert main(["config", "check"]) == 1
    said = capsys.readouterr().err
    assert "line 2: unknown key 'modell' (did you mean 'model'?)" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("content", [None, "", 'model = "1b"\n'])
def test_check_passes_a_right_or_missing_file(content: str | None, config_file: Path, capsys):
    if content is not None:
        config_file.write_text(content)
    assert main(["config", "check"]) == 0
    assert str(config_file) in capsys.readouterr().out
