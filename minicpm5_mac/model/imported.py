"""Models made from GGUF files: a folder each below the cache, with a record of where it is from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from minicpm5_mac import locations
from minicpm5_mac.events import ModelStage
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.lock import one_at_a_time
from minicpm5_mac.model.progress import OnEvent

# Raised when an import writes something else than before, so that old folders are made again.
IMPORT_VERSION = 3

RECORD = "import.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class ImportedModel:
    """One imported model. revision: what it was made from, such as "sha256:1a2b…"."""

    name: str
    path: Path
    revision: str
    source: str
    version: int


def imported_models_dir() -> Path:
    """The folder that holds one folder for each imported model."""
    return locations.cache_dir() / "models"


def imported_models() -> Iterator[ImportedModel]:
    """All imported models, by name."""
    folder = imported_models_dir()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (model := find_imported(path.name)) is not None:
            yield model


def find_imported(name: str) -> ImportedModel | None:
    """The imported model of that name, or None."""
    if not _NAME.fullmatch(name):
        return None
    path = imported_models_dir() / name
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
        return ImportedModel(name, path, record["revision"], record["source"], record["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def import_gguf(
    source: Path,
    name: str,
    on_event: OnEvent,
    *,
    revision: str = "",
    sampling: Mapping[str, Any] = MappingProxyType({}),
    replace: bool = False,
) -> ImportedModel:
    """Make a model folder of a GGUF file, under this name.

    revision: what to record; the file's hash where it is empty. sampling: defaults that its makers
    advise (generation_config.json) and the file does not hold. replace: an imported model of
    this name gives way; otherwise ModelFailure. Raises ModelFailure as gguf_import does. An import
    that fails or is interrupted leaves nothing that could be taken for a model.
    """
    if not _NAME.fullmatch(name):
        raise ModelFailure(
            "error",
            f"{name!r} is no name for a model.",
            "Use letters, digits, dots, dashes and underscores, beginning with a letter or digit.",
        )
    place = imported_models_dir() / name
    if place.exists() and not replace:
        raise ModelFailure(
            "error",
            f"A model named {name} is there already.",
            f"Choose another name with --name, or remove it: minicpm5-mac models remove {name}",
        )
    from minicpm5_mac.model.gguf_import.folder import write_model_folder

    on_event(ModelStage("importing", source.name))
    work = imported_models_dir() / f".{name}.partial"
    try:
        with one_at_a_time(f"import-{name}", on_event):
            shutil.rmtree(work, ignore_errors=True)  # of an import that was killed
            work.mkdir(parents=True)
            try:
                write_model_folder(source, work, sampling)
                revision = revision or f"sha256:{_sha256(source)}"
                record = {"source": source.name, "revision": revision, "version": IMPORT_VERSION}
                (work / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
                if place.exists():
                    shutil.rmtree(place)
                os.replace(work, place)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise ModelFailure(
            "error",
            f"{source.name} could not be imported: {error.strerror or error}.",
            f"Check the space left and the rights on {place.parent}.",
        ) from error
    return ImportedModel(name, place, revision, source.name, IMPORT_VERSION)


def remove_imported(model: ImportedModel) -> None:
    """Delete an imported model's folder."""
    shutil.rmtree(model.path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
