"""The parameters of a kernel, from its preprocessed text."""

from __future__ import annotations

import re
from dataclasses import dataclass


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
