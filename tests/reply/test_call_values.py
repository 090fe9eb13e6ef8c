"""Values of parameters: what a text means under a parameter's declaration."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicpm5_mac.reply.arguments import WrongType, read_value
from minicpm5_mac.reply.literals import MAX_DEPTH, NoLiteral, read_literal
from minicpm5_mac.reply.tool_schema import ToolSchema


def value_of(schema: object, text: str, root: dict[str, Any] | None = None) -> Any:
    """The value of a text; the class WrongType if there is none."""
    tool = ToolSchema("tool", {"properties": {"p": schema}, **(root or {})})
    try:
        return read_value(tool, tool.parameter("p"), text)
    except WrongType:
        return WrongType


INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}
BOOLEAN, NULL, ARRAY = {"type": "boolean"}, {"type": "null"}, {"type": "array"}
OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INTEGER, "7", 7),
        (INTEGER, " \n-7 ", -7),
        (INTEGER, "12345678901234567890123", 12345678901234567890123),
        (INTEGER, "+7", 7),
        (INTEGER, "1_000", 1000),
        (INTEGER, "0x10", 16),
        (INTEGER, "3.0", WrongType),
        (INTEGER, "1e3", WrongType),
        (INTEGER, "true", WrongType),
        (INTEGER, '"7"', WrongType),
        (INTEGER, "007", WrongType),
        (INTEGER, "٣", WrongType),
        (INTEGER, "7 8", WrongType),
        (INTEGER, "", WrongType),
        (INTEGER, "9" * 5000, WrongType),
        (NUMBER, "3", 3),
        (NUMBER, "3.0", 3.0),
        (NUMBER, "-1.5e-3", -0.0015),
        (NUMBER, ".5", 0.5),
        (NUMBER, "5.", 5.0),
        (NUMBER, "NaN", WrongType),
        (NUMBER, "Infinity", WrongType),
        (NUMBER, "-Infinity", WrongType),
        (NUMBER, "inf", WrongType),
        (NUMBER, "nan", WrongType),
        (NUMBER, "1e999", WrongType),
        (NUMBER, "False", WrongType),
        (NUMBER, "1,5", WrongType),
        (BOOLEAN, "true", True),
        (BOOLEAN, "True", True),
        (BOOLEAN, "False", False),
        (BOOLEAN, "TRUE", WrongType),
        (BOOLEAN, "1", WrongType),
        (BOOLEAN, "yes", WrongType),
        (NULL, "null", None),
        (NULL, "None", None),
        (NULL, "", WrongType),
        (STRING, "None", "None"),
        (STRING, "'a'", "'a'"),
        (STRING, "1.0", "1.0"),
        (ARRAY, "['a', \"b\", None, True]", ["a", "b", None, True]),
        (ARRAY, "[1, 2,]", [1, 2]),
        (ARRAY, "[,]", WrongType),
        (ARRAY, "[1 2]", WrongType),
        (ARRAY, "[1e999]", WrongType),
        (ARRAY, "[NaN]", WrongType),
        (ARRAY, "a, b", WrongType),
        (ARRAY, "{}", WrongType),
        (ARRAY, r"['it\'s', '\x41\u00e9\n']", ["it's", "Aé\n"]),
        (ARRAY, r'["\ud83d\ude00"]', ["\U0001f600"]),
        (ARRAY, r'["\ud83d"]', WrongType),
        (ARRAY, '["a\nb"]', WrongType),
        (ARRAY, "['a]", WrongType),
        (ARRAY, "__import__('os')", WrongType),
        (OBJECT, "{'a': {'b': None}}", {"a": {"b": None}}),
        (OBJECT, '{"a": 1, "a": 2}', WrongType),
        (OBJECT, "{1: 2}", WrongType),
        (OBJECT, "{a: 2}", WrongType),
        (OBJECT, "[1]", WrongType),
        ({"type": "array", "items": STRING}, '["a", "b"]', ["a", "b"]),
        ({"type": "array", "items": STRING}, '["a", 1]', WrongType),
        ({"type": "array", "items": INTEGER}, "[1.0]", WrongType),
        ({"type": "array", "items": INTEGER}, "[true]", WrongType),
        ({"type": "array", "minItems": 1}, "[]", WrongType),
        ({"type": "integer", "minimum": 1}, "0", WrongType),
        ({"type": "string", "enum": ["a", "b"]}, "a", "a"),
        ({"type": "string", "enum": ["a", "b"]}, "c", WrongType),
        ({"type": "string", "enum": ["1"]}, "1", "1"),
        ({"type": "string", "pattern": "^a+$"}, "b", WrongType),
        ({"type": "string", "maxLength": 2}, "abc", WrongType),
        ({"enum": ["red", 3]}, "red", "red"),
        ({"enum": ["red", 3]}, "3", 3),
        ({"enum": ["red", 3]}, "blue", WrongType),
        ({"const": "x"}, "x", "x"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "None", None),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"type": ["string", "null"]}, '"a"', '"a"'),
        ({"type": ["string", "null"]}, "", ""),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"type": ["integer", "null"]}, "five", WrongType),
        ({"type": ["integer", "string"]}, "5", 5),
        ({"type": ["integer", "string"]}, "five", "five"),
        ({"anyOf": [INTEGER, NULL]}, "None", None),
        ({"anyOf": [STRING, NULL]}, "true", "true"),
        ({"anyOf": [STRING, ARRAY]}, '["a"]', ["a"]),
        ({"oneOf": [INTEGER, BOOLEAN]}, "True", True),
        ({"oneOf": [INTEGER, BOOLEAN]}, "a", WrongType),
        ({"allOf": [INTEGER, {"minimum": 3}]}, "2", WrongType),
        ({"allOf": [INTEGER, {"minimum": 3}]}, "3", 3),
        ({}, "5", 5),
        ({}, "five", "five"),
        ({}, '"five"', "five"),
        ({}, "{'a': 1}", {"a": 1}),
        ({}, "{broken", "{broken"),
        (True, "x", "x"),
        (False, "x", WrongType),
    ],
)
def test_the_declaration_decides_what_a_text_means(schema: object, text: str, value: Any) -> None:
    got = value_of(schema, text)
    assert got == value
    assert type(got) is type(value)


def test_references_within_the_schema_are_followed() -> None:
    root = {
        "$defs": {
            "Color": {"enum": ["red", "green"]},
            "Count": {"type": "integer"},
            "Tree": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/Tree"}}}},
        }
    }
    assert value_of({"$ref": "#/$defs/Count"}, "3", root) == 3
    assert value_of({"$ref": "#/$defs/Count"}, "3.0", root) is WrongType
    assert value_of({"$ref": "#/$defs/Color"}, "blue", root) is WrongType
    assert value_of({"$ref": "#/$defs/Tree"}, "{'kids': [{}]}", root) == {"kids": [{}]}
    assert value_of({"$ref": "#/$defs/Tree"}, "{'kids': [1]}", root) is WrongType


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"$ref": "#/properties/p"},
        {"$ref": 5},
        {"type": "str"},
        {"type": 5},
        {"type": "string", "pattern": "("},
        {"enum": 5},
        {"anyOf": 5},
        {"anyOf": [5]},
        {"minimum": "a", "type": "integer"},
        {"allOf": [{"$ref": "#/properties/p"}]},
        {"anyOf": [{"$ref": "#/properties/p"}, {"$ref": "#/properties/p"}]},
        {"allOf": [{"$ref": "#/properties/p"}, {"$ref": "#/properties/p"}]},
        5,
        "string",
        [],
    ],
)
def test_a_broken_declaration_lets_no_call_through_and_raises_nothing(
    schema: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a schema was fetched")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    monkeypatch.setattr("socket.socket.connect", no_network)
    assert value_of(schema, "1") is WrongType


def test_an_older_dialect_is_no_way_round_the_integers() -> None:
    root = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"Count": {"type": "integer"}},
        "properties": {"n": {"type": "integer"}, "p": {"$ref": "#"}},
    }
    tool = ToolSchema("tool", root)
    assert read_value(tool, {"$ref": "#/definitions/Count"}, "3") == 3
    assert read_value(tool, {"$ref": "#"}, '{"n": 3}') == {"n": 3}
    for schema, text in (({"$ref": "#/definitions/Count"}, "3.0"), ({"$ref": "#"}, '{"n": 3.0}')):
        with pytest.raises(WrongType):
            read_value(tool, schema, text)


def test_a_deep_schema_raises_nothing() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(5000):
        schema = {"anyOf": [schema]}
    assert value_of(schema, "1") is WrongType
    root: dict[str, Any] = {"required": ["a"]}
    for _ in range(5000):
        root = {"allOf": [root]}
    assert ToolSchema("tool", root).required in ((), ("a",))


@pytest.mark.parametrize(
    "root",
    [
        {"$schema": []},
        {"$schema": "https://example.com/dialect"},
        {"$id": 5},
        {"properties": 5},
        {"required": 5},
        {"required": [[]]},
        {"allOf": 5},
        {"$ref": "#"},
        5,
        None,
        "x",
    ],
)
def test_a_broken_tool_raises_nothing(root: object) -> None:
    tool = ToolSchema("tool", root)
    assert tool.required == ()
    assert tool.parameter("p") is None
    assert isinstance(tool.error_of_all({}), str)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
@settings(deadline=None)
def test_json_and_python_spell_the_same_value(value: Any) -> None:
    assert read_literal(json.dumps(value)) == value
    assert read_literal(json.dumps(value, ensure_ascii=False, indent=1)) == value
    assert read_literal(repr(value)) == value


@given(st.text(alphabet="[]{},:'\"\\ 01.eE+-_xnuTrealsFNon") | st.text())
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_value_or_none(text: str) -> None:
    try:
        value = read_literal(text)
    except NoLiteral:
        return
    assert not isinstance(value, float) or math.isfinite(value)
    json.dumps(value, allow_nan=False)


def test_nesting_has_an_end() -> None:
    assert read_literal("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(NoLiteral, match="deep"):
        read_literal("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
