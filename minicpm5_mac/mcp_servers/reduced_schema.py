"""A server's descriptions and schemas, reduced to what a small model and our own check can use.

Everything that comes in was written by the server. A description goes out with nothing hidden in it
and cut to a few words; a schema keeps what a call is checked by here (a pattern, for one, could
take for ever to match), the server checks the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from minicpm5_mac.visible_text import unhidden

MOST_DEPTH = 3
MOST_PARTS = 1000
MOST_CHOICES, CHOICES_CHARACTERS = 20, 300

_PARAMETER = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,63}")
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_BOUNDS = ("minimum", "maximum")


class Unusable(Exception):
    """Why a tool cannot be called by the model."""


def shortened(text: str, most: int) -> str:
    """The first words of a description, on one line, with nothing hidden in them."""
    # Cut before it is looked at closely: it may be of any length.
    text = " ".join(unhidden(text[: 20 * most]).split())
    if len(text) <= most:
        return text
    cut = text[:most]
    sentence = max(cut.rfind(". "), cut.rfind("。"))
    if sentence >= most // 3:
        return cut[: sentence + 1]
    return f"{cut[: most - 1].rsplit(' ', 1)[0]}…"


def reduced(schema: Mapping[str, Any], words: int) -> dict[str, Any]:
    """A schema of arguments, as far as a call is checked by it here.

    words: characters that the description of a parameter may have.
    Raises Unusable where a call cannot give what is required.
    """
    part = _Reduction(schema, words).part(schema, MOST_DEPTH)
    if part.get("type", "object") != "object":
        raise Unusable("its arguments are no object")
    part = {"type": "object", "properties": {}} | part
    part.pop("description", None)
    missing = [name for name in _required(schema, schema) if name not in part["properties"]]
    if missing:
        raise Unusable("a required argument has no name that can be written, or no description")
    further = _resolved(schema, schema).get("additionalProperties")
    if further is True or isinstance(further, dict):
        part["additionalProperties"] = True
    return part


class _Reduction:
    """One schema on its way to less. References can make a short one endless: parts are counted."""

    def __init__(self, root: Mapping[str, Any], words: int) -> None:
        self._root = root
        self._words = words
        self._left = MOST_PARTS

    def part(self, schema: Any, depth: int, described: bool = False) -> dict[str, Any]:
        self._left -= 1
        if depth < 0 or self._left < 0:
            return {}
        schema = _resolved(schema, self._root)
        kept: dict[str, Any] = {}
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(choices, list) and "properties" not in schema:
            kept |= _one_of([self.part(choice, depth - 1) for choice in choices[:MOST_CHOICES]])
        kept |= _type(schema)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and 0 < len(values) <= MOST_CHOICES and _plain(values):
            kept["enum"] = values
        for name in _BOUNDS:
            if isinstance(schema.get(name), int | float) and not isinstance(schema[name], bool):
                kept[name] = schema[name]
        if kept.get("type") == "object" and depth:
            kept |= self._properties(schema, depth)
        if kept.get("type") == "array" and depth:
            items = self.part(schema.get("items"), depth - 1)
            kept |= {"items": items} if items else {}
        description = schema.get("description")
        if described and self._words and isinstance(description, str) and description.strip():
            kept["description"] = shortened(description, self._words)
        return kept

    def _properties(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        inner = schema.get("properties")
        if not isinstance(inner, Mapping):
            return {}
        kept: dict[str, Any] = {
            "properties": {
                name: self.part(value, depth - 1, described=True)
                for name, value in inner.items()
                if _PARAMETER.fullmatch(name)
            }
        }
        required = [name for name in _required(schema, self._root) if name in kept["properties"]]
        return kept | ({"required": required} if required else {})


def _type(schema: Mapping[str, Any]) -> dict[str, Any]:
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    known = [name for name in listed if name in _TYPES]
    if len(known) > 1:
        known = [name for name in known if name != "null"]  # it can be left out instead
    if not known:
        return {"type": "object"} if "properties" in schema else {}
    return {"type": known[0] if len(known) == 1 else known}


def _one_of(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """What can be said of a value that fits one of these; nothing where they differ too much."""
    some = [choice for choice in choices if choice.get("type") != "null"]
    if len(some) == 1:
        return some[0]
    types = [choice.get("type") for choice in some]
    if all(isinstance(name, str) and name not in ("object", "array") for name in types):
        return {"type": list(dict.fromkeys(types))}
    return {}


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference inside of the document points at; an empty schema for any other."""
    for _ in range(MOST_DEPTH * 2):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if reference is None:
            return schema
        schema = _at(root, reference)
    return {}


def _at(root: Mapping[str, Any], reference: object) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return {}
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _required(schema: Any, root: Mapping[str, Any]) -> list[str]:
    required = _resolved(schema, root).get("required")
    names = required if isinstance(required, list) else []
    return [name for name in names if isinstance(name, str)]


def _plain(values: list[Any]) -> bool:
    scalars = all(value is None or isinstance(value, str | int | float) for value in values)
    return scalars and len(json.dumps(values, ensure_ascii=False)) <= CHOICES_CHARACTERS
