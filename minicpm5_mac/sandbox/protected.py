"""Names a sandboxed tool can never write, because something outside the sandbox obeys them.

git runs what `.git/config` and `.git/hooks` say, editors run what `.vscode` and `.idea` say,
direnv what `.envrc` says, a login shell its rc files; `.minicpm5` is our own folder. Each was
the way out of some agent's sandbox (claude-code CVE-2026-25725, kilocode#11650, fletch#564).
The protection holds where the name is absent as well: what does not exist can be created.
"""

from __future__ import annotations

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
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
)


def is_protected(name: str) -> bool:
    """Whether one path component is a protected name on a disk that folds case (APFS does)."""
    return name.casefold() in PROTECTED_NAMES
