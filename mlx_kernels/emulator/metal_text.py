"""Preprocessed Metal text as C++: what macros alone cannot say.

The text keeps its lines, so that compiler messages and faults point into the `.metal` file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
_DECIMAL_FLOAT = re.compile(r"(?:\d[\d']*\.\d*|\.\d+)(?:[eE][+-]?\d+)?$|\d[\d']*[eE][+-]?\d+$")
_FUNCTION_CONSTANT = re.compile(
    r"\bconstant\s+(?P<type>\w+)\s+(?P<name>\w+)\s*\[\[\s*function_constant\(\s*(?P<index>\d+)\s*\)\s*\]\]\s*;"
)
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


MARKER = re.compile(r'^#\s*(?:line\s+)?(\d+)\s+"([^"\n]*)"[^\n]*$', re.MULTILINE)


def parts_of(text: str) -> list[tuple[str, int, str]]:
    """Preprocessed text by the files it came from: file, number of the first line, text.

    Each part but the first begins with its line marker.
    """
    found = list(MARKER.finditer(text))
    starts = [0, *(m.start() for m in found)]
    places = [("", 1), *((m[2], int(m[1]) - 1) for m in found)]
    ends = [*starts[1:], len(text)]
    return [
        (file, line, text[start:end])
        for (file, line), start, end in zip(places, starts, ends, strict=True)
    ]


def as_cpp(
    text: str,
    function_constants: Mapping[int, bool | int | float],
    is_metal: Callable[[str], bool],
) -> str:
    """Preprocessed Metal text as C++ for the emulator; `is_metal` tells the files that are Metal
    from the emulator's own, which are C++ already.

    Variables declared `threadgroup` become references into the emulated threadgroup's memory, other
    uses of the word are dropped; `constant` means const; literals like 1.0 become float, as Metal
    has no double; function
    constants become constants of the given values, by index.
    """
    pieces: list[str] = []
    variables = 0
    for file, _, part in parts_of(text):
        if is_metal(file):
            part, variables = _part_as_cpp(part, function_constants, variables)
        pieces.append(part)
    return "".join(pieces)


def _part_as_cpp(
    text: str, function_constants: Mapping[int, bool | int | float], variables: int
) -> tuple[str, int]:
    """One file's text as C++, and how many threadgroup variables there have been so far."""
    text = _FUNCTION_CONSTANT.sub(lambda m: _function_constant(m, function_constants), text)
    tokens = tokens_of(text)
    out: list[str] = []
    before = ";"
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "number":
            out.append(_literal(token.text))
        elif token.kind == "name" and token.text == "constant" and before != "[":
            if not _const_beside(tokens, i):
                out.append("const")
        elif token.kind == "name" and token.text == "threadgroup" and before != "[":
            declaration = _declaration(tokens, i) if before in ";{}" else None
            if declaration is not None:
                end, base, declarators, lines = declaration
                for name, dimensions in declarators:
                    variables += 1
                    out.append(
                        f"typedef {base} emulated_type_{variables}{dimensions}; "
                        f"auto& {name} = ::emulated_threadgroup_variable<{variables}, "
                        f'emulated_type_{variables}>("{name}");'
                    )
                out.append("\n" * lines)
                i = end + 1
                before = ";"
                continue
        else:
            out.append(token.text)
        if token.kind not in ("space", "marker"):
            before = token.text
        i += 1
    return "".join(out), variables


def _const_beside(tokens: list[Token], place: int) -> bool:
    """Whether the specifiers around `constant` say const already, which C++ allows once."""
    for step in (-1, 1):
        i = place + step
        while 0 <= i < len(tokens) and tokens[i].text in (*_SPECIFIERS, "const", " ", "\n"):
            if tokens[i].text == "const":
                return True
            i += step
    return False


_SPECIFIERS = ("static", "constexpr", "inline", "extern", "volatile")
_SPACES = ("device", "constant", "thread", "threadgroup")


def as_strict_cpp(
    text: str,
    function_constants: Mapping[int, bool | int | float],
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


def _part_as_strict_cpp(text: str, function_constants: Mapping[int, bool | int | float]) -> str:
    text = _FUNCTION_CONSTANT.sub(lambda m: _function_constant(m, function_constants), text)
    tokens = tokens_of(text)
    constructors = _vector_constructors(tokens)
    pointers: set[int] = set()
    dropping = False
    out: list[str] = []
    before, earlier = ";", ";"
    for i, token in enumerate(tokens):
        piece = token.text
        if token.kind == "number":
            piece = _literal(piece)
        elif token.kind == "name" and piece in _SPACES:
            if before == ")" or (before == "const" and earlier == ")"):
                following = next((t.text for t in tokens[i + 1 :] if t.kind != "space"), ";")
                if following in ("{", ";", ":", "noexcept", "=", "-", "const"):
                    piece = ""
            elif piece == "threadgroup" and before in ";{}" and _declaration(tokens, i):
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


_VECTOR_NAME = re.compile(
    r"(bool|char|uchar|short|ushort|int|uint|long|ulong|half|bfloat|float)[234]$"
)


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


def _literal(text: str) -> str:
    """A number of Metal as one of C++: without a suffix a float; 1.0h a half, 1.0bf a bfloat."""
    for suffix, kind in (("bf", "bfloat"), ("h", "half"), ("H", "half")):
        if _DECIMAL_FLOAT.match(text.removesuffix(suffix)) and text.endswith(suffix):
            return f"{kind}({text.removesuffix(suffix)}f)"
    return text + "f" if _DECIMAL_FLOAT.match(text) else text


def _function_constant(match: re.Match[str], values: Mapping[int, bool | int | float]) -> str:
    kind, name, index = match["type"], match["name"], int(match["index"])
    lines = "\n" * match.group().count("\n")
    if index not in values:
        # Fails by its name when the kernel is linked, if the kernel uses it.
        return f"extern constant {kind} {name};{lines}"
    value = values[index]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"static constexpr constant {kind} {name} = {text};{lines}"


def _declaration(
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


@dataclass(frozen=True)
class Binding:
    """What Metal passes as one parameter of a kernel: buffer `index`, or a thread's attribute."""

    index: int | None
    attribute: str | None


_BUFFER = re.compile(r"\[\[\s*buffer\(\s*(\d+)\s*\)")
_ATTRIBUTE = re.compile(r"\[\[\s*(\w+)\s*\]\]")


def bindings_of(text: str, kernel: str) -> list[Binding]:
    """The parameters of a kernel in preprocessed text, in order.

    Raises KeyError if there is no kernel of this name, ValueError for a parameter without a buffer
    index or attribute.
    """
    for match in re.finditer(rf"\bvoid\s+{re.escape(kernel)}\s*\(", text):
        parameters, end = _parameters(text, match.end())
        if text[end:].lstrip().startswith("{"):
            return [_binding(kernel, p) for p in parameters]
    raise KeyError(kernel)


def _parameters(text: str, start: int) -> tuple[list[str], int]:
    depth, piece, pieces = 0, start, []
    for i in range(start, len(text)):
        c = text[i]
        if c in "([<{":
            depth += 1
        elif c in "]>}" or (c == ")" and depth):
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[piece:i])
            piece = i + 1
        elif c == ")":
            pieces.append(text[piece:i])
            return pieces, i + 1
    raise ValueError("a parameter list without an end")


def _binding(kernel: str, parameter: str) -> Binding:
    if found := _BUFFER.search(parameter):
        return Binding(int(found[1]), None)
    if found := _ATTRIBUTE.search(parameter):
        return Binding(None, found[1])
    raise ValueError(f"parameter {parameter.strip()!r} of kernel {kernel} is not bound to a buffer")
