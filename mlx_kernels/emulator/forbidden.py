"""What Metal's language forbids and C++ does not, found in a kernel's tokens.

Metal Shading Language Specification 3.2, sections 1.4.1 (restrictions) and 4.4 (threadgroup
address space).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlx_kernels.emulator.metal_text import Token, parts_of, tokens_of

_WORDS = {
    "double": "Metal has no double",
    "new": "Metal has no new",
    "delete": "Metal has no delete",
    "try": "Metal has no exceptions",
    "catch": "Metal has no exceptions",
    "throw": "Metal has no exceptions",
    "virtual": "Metal has no virtual functions",
    "goto": "Metal has no goto",
    "typeid": "Metal has no type identification",
    "dynamic_cast": "Metal has no dynamic_cast",
    "thread_local": "Metal has no thread_local",
    "asm": "Metal has no asm",
    "__asm__": "Metal has no asm",
    "std": "Metal has no C++ standard library",
}


@dataclass(frozen=True)
class Finding:
    """A place where a text is not Metal."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass
class _Scope:
    """A pair of braces. function: it is the body of a function, or within one; kernel: of a
    kernel."""

    function: bool
    kernel: bool


def forbidden_in(text: str, is_metal: Callable[[str], bool]) -> list[Finding]:
    """What a preprocessed text has that Metal forbids, in files that are Metal."""
    findings: list[Finding] = []
    scopes: list[_Scope] = []
    statement: list[str] = []
    for file, line, part in parts_of(text):
        if is_metal(file):
            findings += _part_findings(file, line, part, scopes, statement)
    return findings


def _part_findings(
    file: str, line: int, text: str, scopes: list[_Scope], statement: list[str]
) -> list[Finding]:
    """The findings of one part; the braces and the statement that are open go on from part to
    part, since a part may end anywhere."""
    findings: list[Finding] = []
    for token in tokens_of(text):
        word = token.text
        if token.kind == "marker":
            continue
        if token.kind == "space":
            line += word.count("\n")
            continue
        message = _WORDS.get(word) if token.kind == "name" else None
        if message and not (word == "delete" and statement[-1:] == ["="]):
            findings.append(Finding(file, line, message))
        if _is_lambda(token, statement):
            findings.append(Finding(file, line, "Metal 3 has no lambda expressions"))
        if word == "{":
            scopes.append(_scope(statement, scopes[-1] if scopes else None))
            statement.clear()
        elif word == "}":
            if scopes:
                scopes.pop()
            statement.clear()
        elif word == ";":
            if scopes and scopes[-1].function:
                findings += _local_findings(statement, scopes[-1], file, line)
            statement.clear()
        else:
            statement.append(word)
    return findings


def _scope(statement: list[str], outer: _Scope | None) -> _Scope:
    if outer and outer.function:
        return _Scope(True, outer.kernel)
    words = set(statement)
    if words & {"namespace", "enum"} or "(" not in words or statement[-1:] == ["="]:
        return _Scope(False, False)
    head = statement[: statement.index("(")]
    if words & {"struct", "class", "union"} and head[:1] != ["template"] and ")" not in words:
        return _Scope(False, False)
    if any(word in ("struct", "class", "union") for word in _after_template(head)):
        return _Scope(False, False)
    return _Scope(True, "kernel" in words)


def _after_template(head: list[str]) -> list[str]:
    """The words of a declaration after its `template <...>`."""
    if head[:1] != ["template"]:
        return head
    depth = 0
    for i, word in enumerate(head):
        depth += {"<": 1, ">": -1}.get(word, 0)
        if word == ">" and depth == 0:
            return head[i + 1 :]
    return []


def _is_lambda(token: Token, statement: list[str]) -> bool:
    """A `[` where an expression begins, after which no attribute can stand."""
    if token.text not in ("&", "=", "]") or statement[-1:] != ["["]:
        return False
    return len(statement) > 1 and statement[-2] in ("=", "(", ",", "return", "&&", "||")


def _local_findings(statement: list[str], scope: _Scope, file: str, line: int) -> list[Finding]:
    findings = []
    if "static" in statement and "constant" not in statement:
        findings.append(Finding(file, line, "Metal has no static variables in functions"))
    if statement[:1] == ["threadgroup"] and not scope.kernel:
        declared = statement[1:]
        end = next((i for i, w in enumerate(declared) if w in ("[", "=", "(", ",")), len(declared))
        if not {"*", "&"} & set(declared[:end]):
            message = "Metal declares threadgroup variables in kernels only"
            findings.append(Finding(file, line, message))
    return findings
