"""`minicpm5-mac models`: what is on this machine, and getting, importing and removing models."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicpm5_mac.model.inventory import InstalledModel
    from minicpm5_mac.model.progress import OnEvent


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare `models` and its own commands."""
    parser = commands.add_parser("models", help="list, fetch, import and remove models")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("list", help="the models on this machine")
    action.add_argument("--json", action="store_true", help="as a JSON array")
    action.set_defaults(run=run_list)

    action = actions.add_parser("pull", help="fetch a model, or its newest commit")
    action.add_argument("model", nargs="?", default="2b", help="2b, 1b, demo or a hub repository")
    action.set_defaults(run=run_pull)

    action = actions.add_parser("remove", help="delete a fetched or imported model")
    action.add_argument("model", help="as `models list` names it")
    action.add_argument("--yes", action="store_true", help="do not ask")
    action.set_defaults(run=run_remove)

    action = actions.add_parser("path", help="the folder of a model that is on this machine")
    action.add_argument("model", help="as `models list` names it")
    action.set_defaults(run=run_path)

    action = actions.add_parser("info", help="size, shape, and what context fits in memory")
    action.add_argument("model", help="as `models list` names it, or a folder")
    action.add_argument("--json", action="store_true", help="as a JSON object")
    action.set_defaults(run=run_info)

    action = actions.add_parser("import", help="make an MLX model of a llama GGUF file")
    action.add_argument("file", type=Path, help="a file ending in .gguf")
    action.add_argument("--name", help="what to call it; the file's name if not given")
    action.add_argument("--replace", action="store_true", help="replace an import of that name")
    action.set_defaults(run=run_import)


def run_list(arguments: argparse.Namespace) -> int:
    """One line a model, or a JSON array."""
    from minicpm5_mac.model.inventory import installed_models

    models = installed_models()
    if arguments.json:
        print(json.dumps([_as_json(model) for model in models], indent=2, ensure_ascii=False))
        return 0
    if not models:
        print("No models yet. Fetch one: minicpm5-mac models pull (or: models pull demo)")
        return 0
    rows = [("MODEL", "SIZE", "FROM", "REVISION", "")]
    rows += [
        (
            model.name + (f" ({model.alias})" if model.alias else ""),
            _size(model.bytes),
            model.source,
            _short(model.revision),
            f"unusable: {model.fault}" if model.fault else "",
        )
        for model in models
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [row[column].ljust(width) for column, width in enumerate(widths)]
        print("  ".join([*cells, row[4]]).rstrip())
    return 0


def run_pull(arguments: argparse.Namespace) -> int:
    """Fetch with progress on standard error; the folder's path goes to standard output."""
    from minicpm5_mac.model.resolve import resolve

    with _events_on_stderr() as show:
        model = resolve(arguments.model, on_event=show, newest=True)
    print(f"{model.name} {_short(model.revision)}".rstrip(), file=sys.stderr)
    print(model.path)
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """Delete after asking; where nobody can be asked, --yes is needed."""
    from minicpm5_mac.failure import Failure
    from minicpm5_mac.model.inventory import remove_installed

    model = _installed(arguments.model)
    question = f"Delete {model.name} ({_size(model.bytes)}) from {model.owned}? [y/N] "
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise Failure("Nothing was deleted: there is no terminal to ask on.", "Add --yes.", 2)
        if input(question).strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 1
    remove_installed(model)
    print(f"Deleted {model.name}.")
    return 0


def run_path(arguments: argparse.Namespace) -> int:
    """The folder alone, for scripts."""
    print(_installed(arguments.model).path)
    return 0


def run_info(arguments: argparse.Namespace) -> int:
    """Facts of a model, and how much context fits here."""
    from minicpm5_mac.model.check import check_model
    from minicpm5_mac.model.fit import fit, memory_limit
    from minicpm5_mac.model.inventory import model_facts

    path = Path(arguments.model).expanduser()
    if path.is_dir():
        model = None
        facts: dict[str, Any] = {"model": arguments.model, "path": str(path.resolve())}
    else:
        model = _installed(arguments.model)
        path = model.path
        facts = _as_json(model)
    facts |= model_facts(path)
    checked = check_model(path)
    wanted = checked.config.get("max_position_embeddings") or 0
    fits = fit(checked.config, checked.weight_bytes, memory_limit(), wanted)
    facts |= {"memory_limit": fits.memory_limit, "context_that_fits": fits.largest_context}
    if arguments.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return 0
    width = max(map(len, facts))
    for key, value in facts.items():
        if value not in ("", None):
            shown = _size(value) if key == "bytes" or key.endswith("_bytes") else value
            shown = _size(value) if key == "memory_limit" else shown
            print(f"{key.replace('_', ' '):{width}}  {shown}")
    if fits.message:
        print(f"\n{fits.message} {fits.advice}")
    return 0


def run_import(arguments: argparse.Namespace) -> int:
    """The new model's folder goes to standard output."""
    from minicpm5_mac.model.imported import import_gguf

    name = arguments.name or arguments.file.stem
    with _events_on_stderr() as show:
        model = import_gguf(arguments.file, name, show, replace=arguments.replace)
    print(f"Imported. Run it: minicpm5-mac chat --model {model.name}", file=sys.stderr)
    print(model.path)
    return 0


@contextmanager
def _events_on_stderr() -> Iterator[OnEvent]:
    from minicpm5_mac.cli.download_line import DownloadLine
    from minicpm5_mac.events import DownloadProgress, Event, ModelStage

    line = DownloadLine(sys.stderr)

    def show(event: Event) -> None:
        if isinstance(event, DownloadProgress):
            line.show(event)
        elif isinstance(event, ModelStage):
            line.finish()
            print(f"{event.stage} {event.detail}", file=sys.stderr)

    try:
        yield show
    finally:
        line.finish()


def _installed(name: str) -> InstalledModel:
    from minicpm5_mac.model.failure import ModelFailure
    from minicpm5_mac.model.inventory import find_installed

    model = find_installed(name)
    if model is None:
        raise ModelFailure(
            "not_found",
            f"There is no model {name!r} on this machine.",
            "See `minicpm5-mac models list`, or fetch it with `minicpm5-mac models pull`.",
        )
    return model


def _as_json(model: InstalledModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "alias": model.alias,
        "source": model.source,
        "revision": model.revision,
        "path": str(model.path),
        "bytes": model.bytes,
        "fault": model.fault,
    }


def _short(revision: str) -> str:
    kind, colon, digest = revision.rpartition(":")
    is_hash = len(digest) >= 40 and " " not in digest
    return f"{kind}{colon}{digest[:12]}" if is_hash else revision


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
