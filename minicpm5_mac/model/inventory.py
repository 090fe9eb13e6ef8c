"""The models that are on this machine, and taking one away again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from minicpm5_mac.model.check import check_model
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.imported import find_imported, imported_models, remove_imported
from minicpm5_mac.model.pins import pin_revision, pinned_revision
from minicpm5_mac.model.resolve import ALIASES


@dataclass(frozen=True)
class InstalledModel:
    """A model that runs without a network.

    name: what to write after --model; alias: a shorter one, or empty. path: its folder. owned:
    what removing it deletes. bytes: on disk. fault: why it would not load, or empty.
    """

    name: str
    alias: str
    source: Literal["hub", "import"]
    revision: str
    path: Path
    owned: Path
    bytes: int
    fault: str = ""


def installed_models() -> list[InstalledModel]:
    """Imported models, and those repositories in the hub's cache that this program can run."""
    return [*_imported(), *_from_hub()]


def find_installed(name: str) -> InstalledModel | None:
    """The installed model of this name or alias."""
    wanted = ALIASES.get(name, name)
    return next((model for model in installed_models() if model.name == wanted), None)


def remove_installed(model: InstalledModel) -> None:
    """Delete an imported model's folder, or the repository from the hub's cache.

    Raises ModelFailure (error) where the files cannot be deleted.
    """
    try:
        if model.source == "import":
            if (imported := find_imported(model.name)) is not None:
                remove_imported(imported)
            return
        from huggingface_hub import scan_cache_dir

        cache = scan_cache_dir()
        for repository in cache.repos:
            if repository.repo_type == "model" and repository.repo_id == model.name:
                commits = [revision.commit_hash for revision in repository.revisions]
                # A copied repository has its original's commits, and they are deleted by commit.
                alone = replace(cache, repos=frozenset({repository}))
                alone.delete_revisions(*commits).execute()
        pin_revision(model.name, None)
    except OSError as error:
        raise ModelFailure(
            "error",
            f"{model.name} could not be removed: {error.strerror or error}.",
            f"Check the rights on {model.owned}.",
        ) from error


def model_facts(folder: Path) -> dict[str, Any]:
    """What `models info` shows of a folder. Raises ModelFailure where it is not a model."""
    from minicpm5_mac.model.fit import kv_bytes_per_token
    from minicpm5_mac.model.llama_shapes import head_dimension, kv_heads

    checked = check_model(folder)
    config = checked.config
    return {
        "layers": config["num_hidden_layers"],
        "query_heads": config["num_attention_heads"],
        "kv_heads": kv_heads(config),
        "head_dim": head_dimension(config),
        "vocabulary": config["vocab_size"],
        "context": config.get("max_position_embeddings"),
        "quantization": quantization_text(config),
        "weight_bytes": checked.weight_bytes,
        "kv_bytes_per_token": kv_bytes_per_token(config),
    }


def quantization_text(config: dict[str, Any]) -> str:
    """Such as "4-bit, group 64", with other layers' bits where they differ, or the number type."""
    quantization = config.get("quantization")
    if not quantization:
        return str(config.get("torch_dtype") or config.get("dtype") or "not quantized")
    text = f"{quantization['bits']}-bit, group {quantization['group_size']}"
    own = sorted({value["bits"] for value in quantization.values() if isinstance(value, dict)})
    return text + (f" (some layers {', '.join(f'{bits}-bit' for bits in own)})" if own else "")


def _imported() -> list[InstalledModel]:
    return [
        InstalledModel(
            model.name,
            "",
            "import",
            model.revision,
            model.path,
            model.path,
            sum(path.stat().st_size for path in model.path.iterdir()),
            _fault(model.path),
        )
        for model in imported_models()
    ]


def _from_hub() -> list[InstalledModel]:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return []
    aliases = {repository: alias for alias, repository in ALIASES.items()}
    models = []
    for repository in sorted(repositories, key=lambda repository: repository.repo_id):
        if repository.repo_type != "model":
            continue
        pinned = pinned_revision(repository.repo_id)
        commits = {revision.commit_hash: revision for revision in repository.revisions}
        used = commits.get(pinned or "") or next(
            (revision for revision in commits.values() if "main" in revision.refs), None
        )
        if used is None:
            continue
        fault = _fault(used.snapshot_path)
        if fault and pinned is None:
            continue  # some other program's model, which was never meant to run here
        models.append(
            InstalledModel(
                repository.repo_id,
                aliases.get(repository.repo_id, ""),
                "hub",
                used.commit_hash,
                used.snapshot_path,
                repository.repo_path,
                repository.size_on_disk,
                fault,
            )
        )
    return models


def _fault(folder: Path) -> str:
    try:
        check_model(folder)
    except ModelFailure as failure:
        return failure.text
    return ""
