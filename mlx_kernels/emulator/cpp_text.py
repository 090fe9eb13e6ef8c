"""Preprocessed Metal text as C++ that the emulator can run."""

from __future__ import annotations

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

_SPECIFIERS = ("static", "constexpr", "inline", "extern", "volatile")


def as_cpp(
    text: str,
    function_constants: FunctionConstants,
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
    text: str, function_constants: FunctionConstants, variables: int
) -> tuple[str, int]:
    """One file's text as C++, and how many threadgroup variables there have been so far."""
    text = with_function_constants(text, function_constants)
    tokens = tokens_of(text)
    out: list[str] = []
    before = ";"
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token.kind == "number":
            out.append(literal(token.text))
        elif token.kind == "name" and token.text == "constant" and before != "[":
            if not _const_beside(tokens, i):
                out.append("const")
        elif token.kind == "name" and token.text == "threadgroup" and before != "[":
            declaration = threadgroup_declaration(tokens, i) if before in ";{}" else None
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
        while 0 <= i < len(tokens) and (
            tokens[i].kind == "space" or tokens[i].text in (*_SPECIFIERS, "const")
        ):
            if tokens[i].text == "const":
                return True
            i += step
    return False
