"""The list of keys, read from the bindings that the widgets themselves declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode


@dataclass(frozen=True)
class KeySection:
    """title: the widget in the user's words. keys: what to press, and what it does."""

    title: str
    keys: tuple[tuple[str, str], ...]


def key_sections(app: App[Any], nodes: Iterable[DOMNode]) -> list[KeySection]:
    """One section for each class among `nodes` that declares keys, in their order.

    A class that names its keys (`BINDING_GROUP_TITLE`) has a section; what it inherits from a
    class without a name of its own belongs to it.
    """
    sections: list[KeySection] = []
    seen: set[str] = set()
    for node in nodes:
        title = node.BINDING_GROUP_TITLE
        if not title or title in seen:
            continue
        seen.add(title)
        by_action: dict[str, tuple[list[str], str]] = {}
        for binding in _own_first(node):
            if not binding.description or binding.system:
                continue
            keys, _ = by_action.setdefault(binding.action, ([], binding.description))
            shown = binding.key_display or app.get_key_display(binding)
            if shown not in keys:
                keys.append(shown)
        if by_action:
            lines = tuple(("  ".join(keys), text) for keys, text in by_action.values())
            sections.append(KeySection(title, lines))
    return sections


def _own_first(node: DOMNode) -> list[Binding]:
    own = {
        key
        for binding in Binding.make_bindings(type(node).__dict__.get("BINDINGS", ()))
        for key in [binding.key]
    }
    # The map is merged along the classes: a key that a subclass takes over is there once.
    merged = [
        binding for bindings in node._bindings.key_to_bindings.values() for binding in bindings
    ]
    return sorted(merged, key=lambda binding: binding.key not in own)
