"""The kinds of value a configuration key may have, each with the words for what it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


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
