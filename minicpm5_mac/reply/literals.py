"""Values as models write them: JSON, and Python's way of printing the same things."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Deeper than any tool's arguments, and far from the recursion limit of json and jsonschema.
MAX_DEPTH = 64

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
        |(?P<number>[-+]?[0-9.][0-9a-zA-Z_.]*(?:(?<=[eE])[-+][0-9_]+)?)
        |(?P<word>[a-zA-Z]+)
        |(?P<mark>[\[\]{},:])
    )[ \t\r\n]*""",
    re.VERBOSE | re.DOTALL,
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
}
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
# https://docs.python.org/3/reference/lexical_analysis.html#escape-sequences
_ESCAPED = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class NoLiteral(ValueError):
    """The text is neither JSON nor a Python literal of JSON's types; says why, for people."""


def read_literal(text: str) -> Any:
    """The value that `text` spells. Raises NoLiteral.

    Python's `True`, `False`, `None`, single quotes, number forms and trailing commas are read
    beside JSON. NaN, infinities, a key given twice, half of a surrogate pair, nesting beyond
    MAX_DEPTH and numbers beyond Python's limit of digits are no values. Cost: linear.
    """
    try:
        value = json.loads(
            "".join(_as_json(text)),
            object_pairs_hook=_unique_keys,
            parse_float=_finite,
        )
    except NoLiteral:
        raise
    except (ValueError, RecursionError) as error:
        raise NoLiteral("it is not a JSON value") from error
    if "\\" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise NoLiteral("it has half of a surrogate pair")
    return value


def _as_json(text: str) -> list[str]:
    tokens: list[str] = []
    position = depth = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise NoLiteral("it is not a JSON value")
        position = match.end()
        token = match[match.lastgroup or 0]
        if match.lastgroup == "string":
            token = _json_string(token)
        elif match.lastgroup == "number":
            token = _json_number(token)
        elif match.lastgroup == "word":
            if token not in _WORDS:
                raise NoLiteral("it is not a JSON value")
            token = _WORDS[token]
        elif token in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise NoLiteral(f"it is nested more than {MAX_DEPTH} deep")
        elif token in "]}":
            depth -= 1
            if tokens[-1:] == [","] and tokens[-2:-1] not in ([], ["["], ["{"], [","]):
                tokens.pop()
        tokens.append(token)
    return [f" {token}" for token in tokens]


def _json_string(token: str) -> str:
    if token[0] == '"':
        try:
            return json.dumps(json.loads(token))
        except ValueError:
            pass
    if "\n" in token:
        raise NoLiteral("it has a line break within quotes")
    return json.dumps(_ESCAPE.sub(_unescape, token[1:-1]))


def _unescape(escape: re.Match[str]) -> str:
    *hexadecimal, octal, char = escape.groups()
    if char:
        return _ESCAPED.get(char, escape[0])
    digits = next((digits for digits in hexadecimal if digits), "")
    code = int(digits, 16) if digits else int(octal, 8)
    if code > 0x10FFFF:
        raise NoLiteral("it has an escape beyond Unicode")
    return chr(code)


def _json_number(token: str) -> str:
    if _JSON_NUMBER.fullmatch(token):
        return token
    try:
        return str(int(token, 0))
    except ValueError:
        pass
    # Python has no floats such as 0x1p3 or 1.e_5, and no numbers such as 007.
    if re.fullmatch(r"[-+]?(?:[0-9_]*\.[0-9_]*|[0-9_]+(?=[eE]))(?:[eE][-+]?[0-9_]+)?", token):
        try:
            return repr(_finite(token))
        except ValueError as error:
            raise NoLiteral("it is not a number") from error
    raise NoLiteral("it is not a number")


def _finite(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise NoLiteral("it is too large a number")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise NoLiteral("it gives a key twice")
    return value
