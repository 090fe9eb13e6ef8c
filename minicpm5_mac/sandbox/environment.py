"""The environment of a sandboxed command: an allow-list, never what the app inherited.

A shell that started the app may hold API keys; codex's stripping of `*KEY*` is off by default,
and a list of bad names is never complete. Nothing is passed that is not named here.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

# Git asks nobody, pagers print, programs that look for CI skip their spinners. git reads no
# system configuration: the Homebrew one is out of reach, and git stops at a refusal.
FIXED = {
    "TERM": "dumb",
    "CI": "1",
    "PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
}
PASSED = ("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")


def sandbox_environment(
    tmp: Path,
    readable: Sequence[Path],
    system_path: Sequence[str],
    inherited: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Variables for a command whose private temporary folder is `tmp`.

    readable: folders that exist inside; of the user's PATH only entries below them stay, then
        `system_path`. HOME is a folder in `tmp`: the real one is out of reach anyway.
    TMPPREFIX is for zsh, whose here-documents ignore TMPDIR (claude-code#17989).
    """
    source = os.environ if inherited is None else inherited
    path = [
        entry
        for entry in source.get("PATH", "").split(":")
        if os.path.isabs(entry) and any(Path(entry).is_relative_to(root) for root in readable)
    ]
    return {
        "PATH": ":".join(dict.fromkeys([*path, *system_path])),
        "HOME": str(tmp / "home"),
        "USER": user_name(),
        "TMPDIR": str(tmp),
        "TMPPREFIX": str(tmp / "zsh"),
        "LANG": "C.UTF-8",
        **{name: source[name] for name in PASSED if name in source},
        **FIXED,
    }


def user_name() -> str:
    """The user's login name, or `user` where the system knows none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "user"
    return name if name.isprintable() and ":" not in name else "user"
