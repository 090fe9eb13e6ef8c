"""The list of keys, read from the bindings that the widgets themselves declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding
from textual.containers import ScrollableContainer
from textual.dom import DOMNode
from textual.widgets import TextArea

_LIBRARY_TITLES = {TextArea: "Editing text", ScrollableContainer: "Scrolling"}
"""Keys of Textual's own classes that are ours to show; what others declare is not for people."""

_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
}


@dataclass(frozen=True)
class KeySection:
    """title: where the keys work. keys: what to press, and what it does."""

    title: str
    keys: tuple[tuple[str, str], ...]


def spelled(key: str) -> str:
    """A key as people write it: "ctrl+c", "page up"."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, _NAMES.get(last, last)])


def key_sections(nodes: Iterable[tuple[str, DOMNode]]) -> list[KeySection]:
    """A section for each of our widgets, under the given title, then those of Textual's classes.

    Keys with one action stand in one line. A key that a class takes over from the class below it
    is listed once, with what it does now.
    """
    sections: list[KeySection] = []
    library: dict[type, dict[str, tuple[list[str], str]]] = {}
    for title, node in nodes:
        own: dict[str, tuple[list[str], str]] = {}
        for owner in type(node).__mro__:
            if owner in _LIBRARY_TITLES:
                into = library.setdefault(owner, {})
            elif owner.__module__.startswith("minicpm5_mac."):
                into = own
            else:
                continue
            for binding in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
                _add(into, node, binding)
        sections.append(_section(title, own))
    sections += [_section(_LIBRARY_TITLES[owner], keys) for owner, keys in library.items()]
    return [section for section in sections if section.keys]


def _add(into: dict[str, tuple[list[str], str]], node: DOMNode, binding: Binding) -> None:
    in_force = node._bindings.key_to_bindings.get(binding.key, ())
    if not binding.description or not any(other.action == binding.action for other in in_force):
        return
    keys, _ = into.setdefault(binding.action, ([], binding.description))
    shown = binding.key_display or spelled(binding.key)
    if shown not in keys:
        keys.append(shown)


def _section(title: str, keys: dict[str, tuple[list[str], str]]) -> KeySection:
    lines = [("  ".join(names), description) for names, description in keys.values()]
    return KeySection(title, tuple(lines))
