"""The kinds of value a configuration key may have, each with the words for what it takes."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# RFC 9110, 5.1 and 5.5: a field's name is a token; of its value, what is plain ASCII.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")


class Kind(Protocol):
    """Reads a TOML value. `takes` completes the sentence "it takes …"."""

    @property
    def takes(self) -> str: ...

    def read(self, value: Any) -> Any:
        """The value as the program uses it. Raises ValueError where it is none of this kind."""
        ...


@dataclass(frozen=True)
class Text:
    """Any string, or any but the empty one."""

    may_be_empty: bool = False

    @property
    def takes(self) -> str:
        return "text in quotes" if self.may_be_empty else "text in quotes that is not empty"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not (value.strip() or self.may_be_empty):
            raise ValueError
        return value


@dataclass(frozen=True)
class Switch:
    """true or false."""

    takes: str = "true or false"

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    choices: tuple[str | int, ...]

    @property
    def takes(self) -> str:
        words = [f'"{c}"' if isinstance(c, str) else str(c) for c in self.choices]
        return f"{', '.join(words[:-1])} or {words[-1]}"

    def read(self, value: Any) -> str | int:
        # 1 == True and 1.0 == 1 in Python, but not to a reader of the file.
        if type(value) not in (str, int) or value not in self.choices:
            raise ValueError
        return value


@dataclass(frozen=True)
class Whole:
    """An integer within bounds; `most` None is no bound."""

    least: int
    most: int | None = None

    @property
    def takes(self) -> str:
        if self.most is None:
            return f"a whole number, at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"

    def read(self, value: Any) -> int:
        if type(value) is not int or value < self.least:
            raise ValueError
        if self.most is not None and value > self.most:
            raise ValueError
        return value


@dataclass(frozen=True)
class Number:
    """A number within bounds, both included."""

    least: float
    most: float

    @property
    def takes(self) -> str:
        return f"a number from {self.least:g} to {self.most:g}"

    def read(self, value: Any) -> float:
        if type(value) not in (int, float) or not self.least <= value <= self.most:
            raise ValueError
        return float(value)


@dataclass(frozen=True)
class Thinking:
    """How long a turn may think: "on" (None, no limit), "off" (0), or tokens."""

    takes: str = '"on", "off" or a whole number of tokens, at least 1'

    def read(self, value: Any) -> int | None:
        if value in ("on", "off"):
            return None if value == "on" else 0
        if type(value) is not int or value < 1:
            raise ValueError
        return value


def thinking_word(thinking: int | None) -> str | int:
    """The way back: what stands in the file for a number of tokens the program uses."""
    return {None: "on", 0: "off"}.get(thinking, thinking)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Words:
    """A list of strings that is not empty; the first of them, or each, is not either."""

    each: bool = True
    what: str = "texts"

    @property
    def takes(self) -> str:
        return f"a list of {self.what} in quotes that is not empty"

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError
        for number, word in enumerate(value):
            if not isinstance(word, str) or "\0" in word:
                raise ValueError
            if not word.strip() and (self.each or number == 0):
                raise ValueError
        return tuple(value)


@dataclass(frozen=True)
class Folders:
    """A list of folders, each from the root on or from the home folder: nothing else is certain."""

    takes: str = 'a list of folders in quotes, each beginning with "/" or "~/"'

    def read(self, value: Any) -> tuple[Path, ...]:
        if not isinstance(value, list):
            raise ValueError
        found = []
        for word in value:
            if not isinstance(word, str) or not word.startswith(("/", "~/")) or "\0" in word:
                raise ValueError
            try:
                found.append(Path(word).expanduser())
            except RuntimeError:  # there is no home folder
                raise ValueError from None
        return tuple(found)


@dataclass(frozen=True)
class Variables:
    """A table of environment variables."""

    takes: str = 'a table of variables, as { NAME = "value" }'

    def read(self, value: Any) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, dict):
            raise ValueError
        for name, text in value.items():
            if not _VARIABLE.fullmatch(name) or not isinstance(text, str) or "\0" in text:
                raise ValueError
        return tuple(value.items())


@dataclass(frozen=True)
class Headers:
    """A table of HTTP header fields."""

    takes: str = 'a table of HTTP headers, as { X-Name = "value" }'

    def read(self, value: Any) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, dict):
            raise ValueError
        for name, text in value.items():
            if not _HEADER.fullmatch(name) or not isinstance(text, str):
                raise ValueError
            if not _HEADER_VALUE.fullmatch(text):
                raise ValueError
        return tuple(value.items())


@dataclass(frozen=True)
class VariableName:
    """The name of an environment variable."""

    takes: str = "the name of an environment variable in quotes"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
            raise ValueError
        return value


@dataclass(frozen=True)
class Address:
    """A web address to which nothing is sent that others could read on the way."""

    takes: str = 'an "https://…" address, or an "http://…" one of this machine (127.0.0.1)'

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError
        parts = urlsplit(value)  # itself a ValueError for brackets that do not match
        if not parts.hostname or " " in value or parts.username is not None or parts.fragment:
            raise ValueError
        _ = parts.port  # a ValueError for what is no port
        if parts.scheme == "https":
            return value
        if parts.scheme == "http" and is_loopback(parts.hostname):
            return value
        raise ValueError


def is_loopback(host: str) -> bool:
    """Whether a host of an address is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
