"""Preprocessed Metal text: its tokens, its files, and the declarations that C++ says otherwise.

Every change keeps the lines, so that compiler messages and faults point into the `.metal` file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<marker>^\#[^\n]*)
  | (?P<string>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
  | (?P<number>(?:0[xX][\da-fA-F']*(?:\.[\da-fA-F]*)?(?:[pP][+-]?\d+)?
      | (?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[A-Za-z_]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<space>\s+)
  | (?P<other>.)
    """,
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_MARKER = re.compile(r'^#\s*(?:line\s+)?(\d+)\s+"([^"\n]*)"[^\n]*$', re.MULTILINE)
_DECIMAL_FLOAT = re.compile(r"(?:\d[\d']*\.\d*|\.\d+)(?:[eE][+-]?\d+)?$|\d[\d']*[eE][+-]?\d+$")
_FUNCTION_CONSTANT = re.compile(
    r"\bconstant\s+(?P<type>\w+)\s+(?P<name>\w+)\s*"
    r"\[\[\s*function_constant\(\s*(?P<index>\d+)\s*\)\s*\]\]\s*;"
)
# Values of function constants, by index.
FunctionConstants = Mapping[int, bool | int | float]

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = set(_OPENING.values())


@dataclass(frozen=True)
class Token:
    """A piece of the text; `kind` is the name of its group in the tokenizer's pattern."""

    kind: str
    text: str


def tokens_of(text: str) -> list[Token]:
    """The text as tokens, which joined give it back."""
    return [Token(m.lastgroup or "other", m.group()) for m in _TOKEN.finditer(text)]


def parts_of(text: str) -> list[tuple[str, int, str]]:
    """Preprocessed text by the files it came from: file, number of the first line, text.

    Each part but the first begins with its line marker.
    """
    found = list(_MARKER.finditer(text))
    starts = [0, *(m.start() for m in found)]
    places = [("", 1), *((m[2], int(m[1]) - 1) for m in found)]
    ends = [*starts[1:], len(text)]
    return [
        (file, line, text[start:end])
        for (file, line), start, end in zip(places, starts, ends, strict=True)
    ]


def with_function_constants(text: str, values: FunctionConstants) -> str:
    """The text with its function constants, which Metal sets when it makes a pipeline, as constants
    of the given values, by index. One without a value is only declared: a kernel that uses it fails
    by its name when it is linked."""

    def constant(match: re.Match[str]) -> str:
        kind, name, index = match["type"], match["name"], int(match["index"])
        lines = "\n" * match.group().count("\n")
        if index not in values:
            return f"extern constant {kind} {name};{lines}"
        value = values[index]
        said = str(value).lower() if isinstance(value, bool) else str(value)
        return f"static constexpr constant {kind} {name} = {said};{lines}"

    return _FUNCTION_CONSTANT.sub(constant, text)


def literal(text: str) -> str:
    """A number of Metal as one of C++: without a suffix a float; 1.0h a half, 1.0bf a bfloat."""
    for suffix, kind in (("bf", "bfloat"), ("h", "half"), ("H", "half")):
        if _DECIMAL_FLOAT.match(text.removesuffix(suffix)) and text.endswith(suffix):
            return f"{kind}({text.removesuffix(suffix)}f)"
    return text + "f" if _DECIMAL_FLOAT.match(text) else text


def threadgroup_declaration(
    tokens: list[Token], start: int
) -> tuple[int, str, list[tuple[str, str]], int] | None:
    """The variables that a statement beginning with `threadgroup` declares, or None if it declares
    a pointer, a reference or a function: end index, type, (name, dimensions) each, line breaks."""
    depth = angle = 0
    lines = 0
    current: list[str] = []
    pieces: list[list[str]] = []
    previous = ""
    for i in range(start + 1, len(tokens)):
        token = tokens[i]
        text = token.text
        lines += text.count("\n")
        if token.kind == "marker":
            continue
        if token.kind == "other":
            if text in _OPENING:
                if depth == 0 and angle == 0 and text in "({":
                    return None
                depth += 1
            elif text in _CLOSING:
                depth -= 1
                if depth < 0:
                    return None
            elif depth == 0 and text == "<" and previous.isidentifier():
                angle += 1
            elif depth == 0 and text == ">" and angle:
                angle -= 1
            elif depth == 0 and angle == 0:
                if text in "*&=":
                    return None
                if text in ",;":
                    pieces.append(current)
                    current = []
                    if text == ";":
                        return _declared(i, pieces, lines)
                    continue
        if token.kind != "space":
            previous = text
        current.append(" " if token.kind == "space" else text)
    return None


def _declared(
    end: int, pieces: list[list[str]], lines: int
) -> tuple[int, str, list[tuple[str, str]], int] | None:
    declarators: list[tuple[str, str]] = []
    base = ""
    for number, piece in enumerate(pieces):
        words = [word for word in piece if word.strip()]
        # The name is the last word before the dimensions.
        cut = len(words)
        while cut and words[cut - 1] == "]":
            depth = 0
            while cut:
                cut -= 1
                depth += {"]": 1, "[": -1}.get(words[cut], 0)
                if depth == 0:
                    break
        if cut == 0 or not words[cut - 1].isidentifier():
            return None
        if number == 0:
            base = " ".join(words[: cut - 1])
        declarators.append((words[cut - 1], " ".join(words[cut:])))
    return (end, base, declarators, lines) if base else None
