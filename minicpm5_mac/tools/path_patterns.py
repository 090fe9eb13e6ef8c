"""Patterns over paths: a search's glob, and .gitignore files (gitignore(5))."""

from __future__ import annotations

import re


class PathPattern:
    """One line of a .gitignore: `*.o`, `/build/`, `docs/**/x`, `!keep`."""

    def __init__(self, line: str) -> None:
        self.negated = line.startswith("!")
        line = line.removeprefix("!")
        if line.startswith("\\"):
            line = line[1:]
        self.folders_only = line.endswith("/")
        line = line.rstrip("/")
        # Without a slash inside, a pattern holds at any depth.
        self._anchored = "/" in line
        self._expression = re.compile(translate(line.removeprefix("/")))

    def covers(self, path: str, is_folder: bool) -> bool:
        """Whether `path`, relative to the pattern's own folder, is meant."""
        if self.folders_only and not is_folder:
            return False
        text = path if self._anchored else path.rpartition("/")[2]
        return self._expression.fullmatch(text) is not None


def translate(glob: str) -> str:
    """A regular expression: `*` and `?` stay within a name, `**` crosses folders."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        rest = glob[at:]
        if rest.startswith("**/"):
            out.append("(?:.*/)?")
            at += 3
        elif rest == "**" or rest.startswith("**"):
            out.append(".*")
            at += 2
        elif rest[0] == "*":
            out.append("[^/]*")
            at += 1
        elif rest[0] == "?":
            out.append("[^/]")
            at += 1
        elif rest[0] == "[" and (end := glob.find("]", at + 2)) > 0:
            inside = glob[at + 1 : end].replace("\\", "\\\\")
            inside = "^" + inside[1:] if inside[0] in "!^" else inside
            out.append(f"[{inside}]")
            at = end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            out.append(re.escape(rest[1]))
            at += 2
        else:
            out.append(re.escape(rest[0]))
            at += 1
    return "".join(out)


def read_patterns(text: str) -> list[PathPattern]:
    """The patterns of a .gitignore; lines that are none are left out."""
    found = []
    for line in text.splitlines():
        line = line.rstrip() if not line.endswith("\\ ") else line
        if line and not line.startswith("#") and line.strip("/!"):
            try:
                found.append(PathPattern(line))
            except re.error:
                continue
    return found


class Ignored:
    """What .gitignore files say, from the outermost folder inwards; the last word counts."""

    def __init__(self, levels: tuple[tuple[str, list[PathPattern]], ...] = ()) -> None:
        self._levels = levels

    def below(self, folder: str, text: str | None) -> Ignored:
        """With the .gitignore (None: there is none) that lies in `folder` ("" is the top)."""
        patterns = read_patterns(text) if text else []
        return Ignored((*self._levels, (folder, patterns))) if patterns else self

    def covers(self, path: str, is_folder: bool) -> bool:
        ignored = False
        for folder, patterns in self._levels:
            relative = path[len(folder) + 1 :] if folder else path
            for pattern in patterns:
                if pattern.covers(relative, is_folder):
                    ignored = not pattern.negated
        return ignored


def glob_matches(glob: str, path: str) -> bool:
    """Whether a file is meant by a search's glob: `*.py` at any depth, `src/**/x.py` from there."""
    text = path if "/" in glob else path.rpartition("/")[2]
    return re.fullmatch(translate(glob.removeprefix("/")), text) is not None
