"""What a tool declares of its arguments: their names, types, and JSON Schema.

Definitions come from the application, from users' files and from MCP servers; one that is broken
makes calls of that tool impossible, never the reading of a reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

# What a definition calls its schema: OpenAI's chat tools, MCP, Anthropic.
_SCHEMA_KEYS = ("parameters", "inputSchema", "input_schema")


def _is_integer(_checker: object, value: object) -> bool:
    """JSON Schema takes 3.0 for an integer; a tool that asks for one gets Python's float."""
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def _strict(dialect: type[Validator]) -> type[Validator]:
    return extend(dialect, type_checker=dialect.TYPE_CHECKER.redefine("integer", _is_integer))


def _strict_validator(schema: dict[str, Any]) -> tuple[Validator | None, Any]:
    """A validator of `schema` and a resolver of its references; None, None if it is broken."""
    # A registry of our own keeps jsonschema from fetching what a $ref points at.
    registry = Registry()
    try:
        dialect = validator_for(schema, default=Draft202012Validator)
        # Wherever jsonschema meets "$schema" again, it goes back to the dialect's lax integers.
        plain = {key: value for key, value in schema.items() if key != "$schema"}
        validator = _strict(dialect)(plain, registry=registry)
        resource = Resource.from_contents(schema, default_specification=DRAFT202012)
        return validator, registry.resolver_with_root(resource)
    except Exception:  # "$schema": [], "$id": 1 and the like raise whatever comes of them
        return None, None


class ToolSchema:
    """One tool's name and arguments."""

    def __init__(self, name: str, schema: object) -> None:
        self.name = name
        self._root: dict[str, Any] = schema if isinstance(schema, dict) else {}
        self._validator, self._resolver = _strict_validator(self._root)
        try:
            self._included = tuple(self._parts(self._root, set()))
        except RecursionError:
            self._included = ()

    @property
    def required(self) -> tuple[str, ...]:
        """Names that a call must give."""
        names: dict[str, None] = {}
        for part in self._included:
            names |= {name: None for name in _list(part, "required") if isinstance(name, str)}
        return tuple(names)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names that a call may give."""
        names: dict[str, None] = {}
        for part in self._included:
            properties = part.get("properties")
            if isinstance(properties, dict):
                names |= dict.fromkeys(properties)
        return tuple(names)

    def parameter(self, name: str) -> object | None:
        """The schema of one parameter; None if it is not declared.

        Other names than the declared ones are allowed only where the schema says so in words,
        by `patternProperties` or `additionalProperties`: leaving these out means in JSON Schema
        that all are welcome, but in tool definitions that nobody thought of it.
        """
        for part in self._included:
            properties = part.get("properties")
            if isinstance(properties, dict) and name in properties:
                return properties[name]
        patterns = self._root.get("patternProperties")
        for pattern, schema in patterns.items() if isinstance(patterns, dict) else ():
            with suppress(re.error, TypeError):
                if re.search(pattern, name):
                    return schema
        additional = self._root.get("additionalProperties")
        return additional if additional is True or isinstance(additional, dict) else None

    def types(self, schema: object) -> frozenset[str] | None:
        """JSON Schema's names of the types that `schema` can accept; None if it does not say."""
        try:
            return self._types(schema, set())
        except RecursionError:
            return None

    def error(self, schema: object, value: Any) -> str:
        """What `schema`, a part of this tool's, has against `value`; empty if nothing."""
        if schema is False:
            return "nothing is allowed here"
        if not isinstance(schema, dict):
            return "" if schema is True else "the tool's schema for it is broken"
        return self._first_error(schema, value)

    def error_of_all(self, arguments: Mapping[str, object]) -> str:
        """What the schema as a whole has against `arguments`; empty if nothing."""
        return self._first_error(None, dict(arguments))

    def _first_error(self, part: dict[str, Any] | None, value: Any) -> str:
        if self._validator is None:
            return "the tool's schema is broken"
        # jsonschema runs what the schema says: unknown types, patterns that are none, references
        # to nowhere or in circles each raise something else. None of it may end a reply, and what
        # cannot be checked is not run.
        try:
            whole = self._validator
            validator = whole if part is None else whole.evolve(schema=part)
            error = next(iter(validator.iter_errors(value)), None)
        except Exception as fault:
            return f"the tool's schema cannot be checked: {type(fault).__name__}"
        if error is None:
            return ""
        return f"{error.json_path[1:].lstrip('.')} {error.message}".strip()

    def _parts(self, schema: object, seen: set[str]) -> Iterator[dict[str, Any]]:
        """A schema and those it includes by `$ref` and `allOf`."""
        if not isinstance(schema, dict):
            return
        yield schema
        yield from self._parts(self._resolve(schema.get("$ref"), seen), seen)
        for part in _list(schema, "allOf"):
            yield from self._parts(part, seen)

    def _types(self, schema: object, seen: set[str]) -> frozenset[str] | None:
        if not isinstance(schema, dict):
            return None
        declared = schema.get("type")
        if isinstance(declared, str):
            return frozenset((declared,))
        if isinstance(declared, list):
            return frozenset(name for name in declared if isinstance(name, str))
        if "const" in schema:
            return frozenset((_type_name(schema["const"]),))
        if values := _list(schema, "enum"):
            return frozenset(_type_name(value) for value in values)
        if isinstance(schema.get("$ref"), str):
            if schema["$ref"] in seen:  # it adds no types to those met on the way here
                return frozenset()
            return self._types(self._resolve(schema["$ref"], seen), seen)
        if choices := _list(schema, "anyOf") or _list(schema, "oneOf"):
            each = [self._types(choice, seen) for choice in choices]
            known = [types for types in each if types is not None]
            return frozenset().union(*known) if len(known) == len(each) else None
        each = (self._types(part, seen) for part in _list(schema, "allOf"))
        if found := next((types for types in each if types), None):
            return found
        # JSON Schema lets a string through where only an object's properties are described.
        implied = {"properties": "object", "items": "array"}
        return next((frozenset((implied[key],)) for key in implied if key in schema), None)

    def _resolve(self, reference: object, seen: set[str]) -> object | None:
        """What a reference points at, the first time it is met."""
        if self._resolver is None or not isinstance(reference, str) or reference in seen:
            return None
        seen.add(reference)
        try:
            return self._resolver.lookup(reference).contents
        except Exception:  # a broken schema, of which _first_error tells
            return None


def declared_tools(tools: Sequence[Mapping[str, Any]]) -> dict[str, ToolSchema]:
    """Tools by name, from definitions as a chat template takes them or as MCP lists them.

    A definition without a name is left out: nothing can call it.
    """
    declared: dict[str, ToolSchema] = {}
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(function, Mapping) and isinstance(name, str):
            schema = next((function[key] for key in _SCHEMA_KEYS if key in function), None)
            declared[name] = ToolSchema(name, schema)
    return declared


def _list(schema: dict[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")
