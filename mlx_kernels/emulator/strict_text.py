"""Preprocessed Metal text as C++ in which clang checks address spaces."""

from __future__ import annotations

import re
from collections.abc import Callable

from mlx_kernels.emulator.metal_text import (
    FunctionConstants,
    Token,
    literal,
    parts_of,
    threadgroup_declaration,
    tokens_of,
    with_function_constants,
)

_SPACES = ("device", "constant", "thread", "threadgroup")
_VECTOR_NAME = re.compile(
    r"(bool|char|uchar|short|ushort|int|uint|long|ulong|half|bfloat|float)[234]$"
)


def as_strict_cpp(
    text: str,
    function_constants: FunctionConstants,
    is_metal: Callable[[str], bool],
) -> str:
    """Preprocessed Metal text as C++ in which address spaces are macros that clang understands.

    As `as_cpp`, but the words stay. What clang cannot say is said otherwise: a variable declared
    `threadgroup` becomes static, the address space of a method's object is dropped, an array
    parameter in an address space becomes the pointer that it is, and a vector's constructor a
    function (`strict_make` of strict_include/metal_stdlib).
    """
    return "".join(
        _part_as_strict_cpp(part, function_constants) if is_metal(file) else part
        for file, _, part in parts_of(text)
    )


def _part_as_strict_cpp(text: str, function_constants: FunctionConstants) -> str:
    text = with_function_constants(text, function_constants)
    tokens = tokens_of(text)
    constructors = _vector_constructors(tokens)
    pointers: set[int] = set()
    dropping = False
    out: list[str] = []
    before, earlier = ";", ";"
    for i, token in enumerate(tokens):
        piece = token.text
        if token.kind == "number":
            piece = literal(piece)
        elif token.kind == "name" and piece in _SPACES:
            if before == ")" or (before == "const" and earlier == ")"):
                following = next((t.text for t in tokens[i + 1 :] if t.kind != "space"), ";")
                if following in ("{", ";", ":", "noexcept", "=", "-", "const"):
                    piece = ""
            elif piece == "threadgroup" and before in ";{}" and threadgroup_declaration(tokens, i):
                piece = "static threadgroup"
            elif before == "[":
                piece = "unused"
            elif before in ("(", ",", "const") and (name := _array_parameter(tokens, i)):
                pointers.add(name)
        elif token.kind == "name" and i in constructors:
            piece = f"strict_make<{piece}" if piece == "vec" else f"strict_make<{piece}>"
        elif i in constructors:
            piece = ">>"
        if i in pointers:
            piece = f"* {piece}"
        elif i - 1 in pointers:
            dropping = True
        if dropping:
            dropping = piece != "]"
            piece = ""
        out.append(piece)
        if token.kind not in ("space", "marker"):
            before, earlier = token.text, before
    return "".join(out)


def _vector_constructors(tokens: list[Token]) -> set[int]:
    """The tokens of vector types that stand before `(`: the name, and of vec<T, N> also the `>`."""
    found: set[int] = set()
    before = ""
    for i, token in enumerate(tokens):
        if token.kind in ("space", "marker"):
            continue
        if token.kind == "name" and before != "operator":
            if _VECTOR_NAME.match(token.text):
                if _next(tokens, i + 1) == "(":
                    found.add(i)
            elif token.text == "vec" and _next(tokens, i + 1) == "<":
                end = _closing_angle(tokens, i + 1)
                if end is not None and _next(tokens, end + 1) == "(":
                    found |= {i, end}
        before = token.text
    return found


def _next(tokens: list[Token], start: int) -> str:
    return next((t.text for t in tokens[start : start + 4] if t.kind != "space"), "")


def _closing_angle(tokens: list[Token], start: int) -> int | None:
    depth = 0
    for i in range(start, min(start + 60, len(tokens))):
        text = tokens[i].text
        depth += {"<": 1, ">": -1}.get(text, 0)
        if text in ";{}":
            return None
        if text == ">" and depth == 0:
            return i
    return None


def _array_parameter(tokens: list[Token], start: int) -> int | None:
    """The name of a parameter `<space> T name[N]`, where `start` is its address space, or None."""
    name = None
    for i in range(start + 1, min(start + 40, len(tokens))):
        text = tokens[i].text
        if text in ("*", "&", ",", ")", ";", "{", "(", "="):
            return None
        if text == "[":
            return name
        if tokens[i].kind == "name":
            name = i
    return None
