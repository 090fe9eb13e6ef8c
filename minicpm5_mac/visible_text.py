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


def unhidden(text: str) -> str:
    """`visible`, for a text that somebody is asked to approve: nothing in it is without a shape.

    Characters that are drawn as nothing (zero-width spaces and joiners, soft hyphen, tags,
    variation selectors, fillers) and blanks that are no space are named by their code point.
    Emoji that are built with joiners lose their shape by it; a command has no use for them.
    """
    text = visible(text)
    if text.isascii():
        return text
    return "".join(f"\u27e8U+{ord(c):04X}\u27e9" if _has_no_shape(c) else c for c in text)


# Hangul fillers, Khmer inherent vowels, the Braille blank: letters and symbols drawn as nothing.
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f")


def _has_no_shape(character: str) -> bool:
    code = ord(character)
    if character in _BLANK_LETTERS or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF:
        return True
    category = unicodedata.category(character)
    return category in ("Cf", "Cn", "Co") or (category == "Zs" and character != " ")


def joins_previous(character: str) -> bool:
    """Whether it is drawn in the cell of the one before: a combining mark, joiner or selector."""
    return (
        character in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.combining(character) != 0
        or unicodedata.category(character) in ("Mn", "Me")
    )
