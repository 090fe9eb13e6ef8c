"""From the name after --model to a folder with a whole model in it."""

from __future__ import annotations

import difflib
from pathlib import Path

from minicpm5_mac.model.check import check_model
from minicpm5_mac.model.demo import NAME as DEMO
from minicpm5_mac.model.demo import demo_model
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.folder import ModelFolder
from minicpm5_mac.model.imported import find_imported, imported_models
from minicpm5_mac.model.progress import OnEvent

DEFAULT_MODEL = "openbmb/MiniCPM5-2B-MLX"
ALIASES = {"2b": DEFAULT_MODEL, "1b": "openbmb/MiniCPM5-1B-MLX"}


def resolve(name: str, *, on_event: OnEvent, newest: bool = False) -> ModelFolder:
    """The checked folder of a model, fetched or made where it is not there yet.

    name, in this order: an alias (2b, 1b, demo), a folder, an imported model, a repository of the
    hub. newest: ask the hub for a newer commit than the one in use. on_event gets ModelStage and
    DownloadProgress events. Raises ModelFailure, whose `reason` is that of ModelFailed.
    """
    try:
        return _resolve(name, on_event, newest)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise ModelFailure(
            "error",
            f"The model {name} could not be read or written: {error.strerror or error}{where}.",
            "Check the space left on the disk and the rights on that file.",
        ) from error


def _resolve(name: str, on_event: OnEvent, newest: bool) -> ModelFolder:
    if not name.strip():
        raise ModelFailure(
            "not_found",
            "No model is named: the name is empty.",
            f"Known here: {', '.join(_known())}; or . for this folder.",
        )
    if name == DEMO:
        return demo_model(on_event)
    if name not in ALIASES:
        path = Path(name).expanduser()
        if path.is_dir():
            check_model(path)
            return ModelFolder(name, path.resolve(), "", "folder")
        if path.suffix == ".gguf":
            raise ModelFailure(
                "foreign",
                f"{name} is a GGUF file; models run from folders in MLX format.",
                f"Import it once: minicpm5-mac models import {name}",
            )
        if (imported := find_imported(name)) is not None:
            check_model(imported.path)
            return ModelFolder(name, imported.path, imported.revision, "import")
        if name.startswith((".", "/", "~")) or name.count("/") != 1:
            raise _not_found(name)
    from minicpm5_mac.model.hub import hub_model  # deferred: the hub's library is slow to import

    return hub_model(ALIASES.get(name, name), on_event, newest=newest)


def _not_found(name: str) -> ModelFailure:
    known = _known()
    near = difflib.get_close_matches(name, known, n=1)
    return ModelFailure(
        "not_found",
        f"There is no model {name!r}: no folder, no alias, no imported model of that name.",
        (f"Did you mean {near[0]}? " if near else "")
        + f"Known here: {', '.join(known)}; or a hub repository such as "
        f"{DEFAULT_MODEL}.",
    )


def _known() -> list[str]:
    return list(dict.fromkeys([*ALIASES, DEMO, *(model.name for model in imported_models())]))
