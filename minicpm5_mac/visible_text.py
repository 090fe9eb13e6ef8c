"""Characters that would steer a terminal or hide in a text, made visible."""

from __future__ import annotations

import unicodedata

# Unicode's own pictures for C0 and DEL: U+2400 + code point, U+2421.
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
_PICTURES[0x7F] = "\u2421"

# C1 controls, line and paragraph separator (str.splitlines breaks at them, terminals do not), the
# bidirectional controls of UAX #9 (they reorder what is read: "Trojan Source", CVE-2021-42574),
# interlinear annotation.
_NAMED = [
    *range(0x80, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xFFF9, 0xFFFC),
]
_TABLE: dict[int, str] = (
    _PICTURES
    | {code: f"\u27e8U+{code:04X}\u27e9" for code in _NAMED}
    # A lone surrogate cannot be written to a terminal at all.
    | {code: "\ufffd" for code in range(0xD800, 0xE000)}
)


def visible(text: str) -> str:
    """`text` with control, bidirectional and unpaired characters shown as symbols.

    Newline and tab stay; CR LF becomes a newline; U+202E becomes "⟨U+202E⟩". The result holds
    nothing that a terminal obeys, and str.splitlines breaks it at newlines alone.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_TABLE)


def joins_previous(character: str) -> bool:
    """Whether it is drawn in the cell of the one before: a combining mark, joiner or selector."""
    return (
        character in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.combining(character) != 0
        or unicodedata.category(character) in ("Mn", "Me")
    )
