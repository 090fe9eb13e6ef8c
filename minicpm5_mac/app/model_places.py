"""Which models are on this machine, and how large one is that is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from minicpm5_mac.failure import Failure

# What reads and fetches models is imported in the functions: the first picture must not wait.

DEMO = "demo"
NAMES = {"2b": "MiniCPM5-2B", "1b": "MiniCPM5-1B", DEMO: "SmolLM2-135M"}
"""The models that this program knows by a short name, in the order in which they are offered."""


@dataclass(frozen=True)
class Place:
    """A model that can be chosen. name: for --model; bytes: on disk, None where it is not here."""

    name: str
    label: str
    bytes: int | None
    fault: str = ""


@dataclass(frozen=True)
class Offer:
    """What a download of a model would be. bytes: None where the hub could not be asked."""

    bytes: int | None
    folder: Path
    fault: str = ""


def short_name(name: str) -> str:
    """A model's name without its owner or folder."""
    return NAMES.get(name) or name.rstrip("/").rpartition("/")[2]


def is_here(name: str) -> bool:
    """Whether the model loads without a download. Reads a few small files at most."""
    from minicpm5_mac.model.imported import find_imported
    from minicpm5_mac.model.pins import pinned_revision
    from minicpm5_mac.model.resolve import ALIASES

    if name == DEMO or (name not in ALIASES and find_imported(name) is not None):
        return find_imported(name) is not None
    if name not in ALIASES and Path(name).expanduser().is_dir():
        return True
    if pinned_revision(ALIASES.get(name, name)) is not None:
        return True
    if name not in ALIASES and name.count("/") != 1:
        return True  # no name of a hub: the engine says what is wrong with it
    from minicpm5_mac.model.hub import cached_model

    return cached_model(ALIASES.get(name, name)) is not None


def refusal(name: str) -> Failure | None:
    """Why there is no such model, None where it can be had. Blocks; may ask the hub.

    Asked before a loaded model is given up for it.
    """
    from minicpm5_mac.model.hub import missing_bytes
    from minicpm5_mac.model.resolve import ALIASES, resolve

    folder = name.startswith((".", "/", "~")) or Path(name).is_dir()
    try:
        if name in ALIASES or (name.count("/") == 1 and not folder):
            if not _in_cache(name):
                missing_bytes(ALIASES.get(name, name))
        elif name != DEMO:
            resolve(name, on_event=lambda event: None)
    except Failure as failure:
        return failure
    return None


def _in_cache(name: str) -> bool:
    try:
        return is_here(name)
    except ValueError:
        return False  # no name that a repository can have: asking for it says so


def offer(name: str) -> Offer:
    """Ask the hub how large a model is; blocks for as long as the network takes."""
    from minicpm5_mac.model.hub import missing_bytes, repository_folder
    from minicpm5_mac.model.resolve import ALIASES

    repository = ALIASES.get(name, name)
    folder = repository_folder(repository).parent
    try:
        return Offer(missing_bytes(repository), folder)
    except Failure as failure:
        return Offer(None, folder, failure.text)


def places(now: str) -> list[Place]:
    """The models with a short name, then all others on this machine. Blocks.

    now: the one that is chosen already: a folder is on no other list.
    """
    from minicpm5_mac.model.inventory import installed_models

    here = {model.alias or model.name: model for model in installed_models()}
    known = [
        Place(name, label, here[name].bytes if name in here else None)
        for name, label in NAMES.items()
    ]
    others = [
        Place(name, short_name(name), model.bytes, model.fault)
        for name, model in here.items()
        if name not in NAMES
    ]
    found = known + others
    if now and all(place.name != now for place in found):
        found.append(Place(now, short_name(now), _folder_bytes(Path(now).expanduser())))
    return found


def _folder_bytes(folder: Path) -> int | None:
    try:
        return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    except OSError:
        return None


def demo_bytes() -> int:
    """The demo's download."""
    from minicpm5_mac.model.demo import WHEEL_BYTES

    return WHEEL_BYTES
