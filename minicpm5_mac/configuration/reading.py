"""Reading the configuration file, and saying on which line it is wrong."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicpm5_mac import locations
from minicpm5_mac.configuration.configuration import Configuration, configuration_of
from minicpm5_mac.configuration.keys import BY_NAME, KEYS, MCP_TABLE, PROMPTS, TABLES, Key
from minicpm5_mac.configuration.mcp_tables import read_servers
from minicpm5_mac.configuration.toml_text import dotted, shown_value
from minicpm5_mac.failure import Failure

_PROMPTS_TABLE = PROMPTS.table
_SYNTAX = re.compile(r"^(?P<what>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Problem:
    """Something wrong in the file. line: counted from 1."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def load_configuration(path: Path | None = None) -> Configuration:
    """The user's defaults (default: `locations.config_file()`); a missing file is an empty one.

    Raises Failure that names everything wrong in the file, each with its line.
    """
    path = path or locations.config_file()
    configuration, problems = read_configuration(path)
    if problems:
        found = "\n".join(f"  {problem}" for problem in problems)
        raise Failure(
            f"The configuration file {path} has mistakes:\n{found}",
            "`minicpm5-mac config show` lists all keys with what they take.",
        )
    return configuration


def read_configuration(path: Path) -> tuple[Configuration, tuple[Problem, ...]]:
    """What can be read of a file, defaults in place of what cannot, and the mistakes by line.

    Raises Failure where the file cannot be opened.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    except OSError as error:
        reason = error.strerror or str(error)
        raise Failure(f"The configuration file {path} cannot be read: {reason}.") from error
    return parse_configuration(data)


def parse_configuration(data: bytes) -> tuple[Configuration, tuple[Problem, ...]]:
    """The same for the bytes of a file."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return configuration_of({}, {}), (Problem(line, "not UTF-8 text"),)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return configuration_of({}, {}), (_syntax_problem(text, error),)
    values: dict[str, Any] = {}
    prompts: dict[str, str] = {}
    tables = document.get(MCP_TABLE)
    servers, wrong = read_servers(document.pop(MCP_TABLE) if isinstance(tables, dict) else {})
    for name, value in _entries(document):
        complaint = _take(name, value, values, prompts)
        if complaint:
            wrong.append((name, complaint))
    problems = [Problem(_line_of(text, name), complaint) for name, complaint in wrong]
    problems.sort(key=lambda problem: problem.line)
    return configuration_of(values, prompts, servers), tuple(problems)


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in document.items():
        if name in TABLES and isinstance(value, dict):
            for inner, inner_value in value.items():
                yield (name, inner), inner_value
        else:
            yield (name,), value


def _take(
    name: tuple[str, ...], value: Any, values: dict[str, Any], prompts: dict[str, str]
) -> str | None:
    own = name[0] == _PROMPTS_TABLE and len(name) == 2
    key = PROMPTS if own else BY_NAME.get(".".join(name))
    if key is None:
        return _unknown(name)
    try:
        read = key.kind.read(value)
    except ValueError:
        return f"{dotted(name)} takes {key.kind.takes}, not {shown_value(value)}"
    if own:
        prompts[name[1]] = read
    else:
        values[key.name] = read
    return None


def _unknown(name: tuple[str, ...]) -> str:
    if name[0] in TABLES and len(name) == 1:
        inner = ".NAME" if name[0] == MCP_TABLE else ""
        return f"{name[0]} is a table: write [{name[0]}{inner}] on a line of its own"
    table = name[0] if len(name) == 2 else ""
    here = [key.last_name for key in KEYS if key.table == table]
    here += [] if table else [f"[{name}]" for name in TABLES]
    where = f"in [{table}]" if table else "at the top"
    return f"unknown key {name[-1]!r}{_hint(name, table)}; keys {where}: {', '.join(here)}"


def _hint(name: tuple[str, ...], table: str) -> str:
    """The nearest key, of the same table if it has one that is near."""

    def nearest(keys: list[Key]) -> Key | None:
        # Of several keys with the same last name there is none.
        names = {key.last_name: key for key in keys}
        match = difflib.get_close_matches(name[-1].lower(), names, n=1)
        return names[match[0]] if match else None

    key = nearest([k for k in KEYS if k.table == table]) or nearest(list(KEYS))
    if key is None:
        tables = difflib.get_close_matches(name[-1].lower(), TABLES, n=1)
        return f" (did you mean [{tables[0]}]?)" if tables and not table else ""
    place = f" in [{key.table}]" if key.table else " at the top"
    return f" (did you mean {key.last_name!r}{'' if key.table == table else place}?)"


def _line_of(text: str, name: tuple[str, ...]) -> int:
    """The line on which a key stands.

    tomllib tells no positions, so longer and longer beginnings of the file are read: the key
    stands on the first line behind the last beginning that could be read without it. Those
    that do not even mention it are passed over.
    """
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines, start=1) if name[-1] in line), 1)
    for count in range(start, len(lines) + 1):
        try:
            found: Any = tomllib.loads("\n".join(lines[:count]) + "\n")
        except tomllib.TOMLDecodeError:
            continue
        for part in name:
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None:
            return start
        start = count + 1
    return start


def _syntax_problem(text: str, error: Exception) -> Problem:
    match = _SYNTAX.match(str(error))
    if match is None:
        return Problem(1, "not TOML" if isinstance(error, RecursionError) else str(error))
    last = text.rstrip("\n").count("\n") + 1
    what = match["what"]
    line = int(match["line"]) if match["line"] else last
    return Problem(line, f"not TOML: {what[:1].lower()}{what[1:]}")
