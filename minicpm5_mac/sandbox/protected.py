"""Names a sandboxed tool can never write, because something outside the sandbox obeys them.

git runs what `.git/config` and `.git/hooks` say, editors run what `.vscode` and `.idea` say,
direnv what `.envrc` says, a login shell its rc files; `.minicpm5` is our own folder. Each was
the way out of some agent's sandbox (claude-code CVE-2026-25725, kilocode#11650, fletch#564).
The protection holds where the name is absent as well: what does not exist can be created.
"""

from __future__ import annotations

import re

PROTECTED_NAMES = (
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".githooks",
    ".devcontainer",
    ".mcp.json",
    ".envrc",
    ".gitmodules",
    ".minicpm5",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
)

# A hidden name with a byte outside of printable ASCII. APFS folds case by Unicode's rules, which
# make ſ an s and the Kelvin sign a k, and HFS+ ignores some invisible characters: `.vſcode` is
# opened as `.vscode`. Every protected name starts with a dot, so refusing these covers all such
# spellings without one non-ASCII byte in a regular expression.
HIDDEN_NON_ASCII = r"/[^ -~]*\.[^/]*[^ -~]"


def _pattern() -> str:
    """A protected name as any component of a path, and all below it, in any ASCII case.

    Written in what macOS profiles and Python understand alike; profiles know no case folding
    (orbit#494), so each letter is a class of two.
    """
    spelled = "|".join("".join(map(_either_case, name[1:])) for name in PROTECTED_NAMES)
    return rf"/[^ -~]*\.({spelled})($|/)"


def _either_case(character: str) -> str:
    if character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    return f"[{character}]" if character == "." else character


PROTECTED_PATTERN = _pattern()
_PROTECTED = re.compile(f"{PROTECTED_PATTERN}|{HIDDEN_NON_ASCII}")


def is_protected(path: str) -> bool:
    """Whether a component of an absolute path is protected, on a disk that folds case."""
    return _PROTECTED.search(path) is not None
