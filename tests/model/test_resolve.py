"""From the name after --model to a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from minicpm5_mac.events import Event
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.imported import import_gguf
from minicpm5_mac.model.resolve import resolve


def ignore(event: Event) -> None:
    """For calls whose events are not looked at."""


def test_a_folder_is_used_as_it_is(home: Path, small_model: Path):
    model = resolve(str(small_model), on_event=ignore)
    assert (model.path, model.revision, model.source) == (small_model, "", "folder")


def test_a_relative_folder_and_the_home_folder(
    home: Path, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(small_model, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("mine", "./mine", "~/mine"):
        assert resolve(name, on_event=ignore).path == tmp_path / "mine"


def test_a_broken_folder_is_refused(home: Path, tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelFailure):
        resolve(str(tmp_path), on_event=ignore)


def test_no_name_is_not_this_folder(home: Path, small_model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(small_model)
    for name in ("", " "):
        with pytest.raises(ModelFailure, match="the name is empty") as caught:
            resolve(name, on_event=ignore)
        assert caught.value.reason == "not_found"
    assert resolve(".", on_event=ignore).path == small_model


def test_a_folder_that_is_no_model_is_named_by_its_path(home: Path, tmp_path: Path):
    place = tmp_path / "notes"
    place.mkdir()
    (place / "notes.txt").write_text("milk")
    with pytest.raises(ModelFailure) as caught:
        resolve(str(place), on_event=ignore)
    assert caught.value.text == f"{place} holds no weights."


def test_an_imported_model_is_found_by_its_name(home: Path, small_gguf: Path):
    imported = import_gguf(small_gguf, "mine", ignore)
    model = resolve("mine", on_event=ignore)
    assert (model.name, model.path, model.source) == ("mine", imported.path, "import")
    assert model.revision == imported.revision


NOT_FOUND = {
    "nothing": ["no model 'nothing'", "2b, 1b, demo"],
    "dmeo": ["Did you mean demo?"],
    "./nowhere": ["no folder"],
    "/no/where/at/all": ["no folder"],
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_a_name_of_nothing_is_answered_with_what_there_is(name: str, home: Path):
    with pytest.raises(ModelFailure) as caught:
        resolve(name, on_event=ignore)
    assert caught.value.reason == "not_found"
    for part in NOT_FOUND[name]:
        assert part in str(caught.value)


def test_a_gguf_file_is_to_be_imported(home: Path, small_gguf: Path):
    with pytest.raises(ModelFailure, match="models import") as caught:
        resolve(str(small_gguf), on_event=ignore)
    assert caught.value.reason == "foreign"


def test_folders_that_cannot_be_written_are_named(
    home: Path, small_gguf: Path, monkeypatch: pytest.MonkeyPatch
):
    home.parent.joinpath("home").write_text("a file where the folder should be")
    with pytest.raises(ModelFailure) as caught:
        resolve("demo", on_event=ignore)
    assert caught.value.reason == "error"
    assert str(home) in caught.value.text
