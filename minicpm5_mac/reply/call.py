"""One tool call as the model writes it: `<function name="N"><param name="P">V</param></function>`.

The rules are those of MiniCPM5's chat template and of what has been seen in the wild: tags whose
space got lost (`<functionname=`) or came out as the tokenizer's `Ġ`, an `<arguments>` wrapper,
single quotes or none. Values come raw or in CDATA. Nothing here knows which tools exist.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from minicpm5_mac.reply.scanner import Reading, Scanner, read_tag

FUNCTION = "<function"
FUNCTION_END = "</function>"
PARAM = "<param"
PARAM_END = "</param>"
ARGUMENTS = "<arguments>"
ARGUMENTS_END = "</arguments>"
CDATA = "<![CDATA["
THINK = "<think>"
THINK_END = "</think>"

# How byte-level BPE spells a space; in a tag it means that a decoder left it untranslated.
GHOST_SPACE = "Ġ"

# Neither can stand in a name, so an opener that lacks its closing quote is known by them.
_NOT_IN_NAME = "<>\n\r"
_NOT_IN_BARE_NAME = "<\"'`="

# Inside a raw value: the one before was never closed, and what follows is no part of it.
_NEXT_PARAMETER = re.compile(rf"<param[\s{GHOST_SPACE}]*name[\s{GHOST_SPACE}]*=")
_REFERENCE = re.compile(r"&(?:#0*([0-9]{1,7})|#x0*([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")


@dataclass(frozen=True)
class RawValue:
    """A parameter's text: CDATA as it stands, otherwise with its references decoded."""

    name: str
    text: str


@dataclass(frozen=True)
class RawCall:
    """A call as read, before anyone asks whether the tool exists.

    name: as far as it was read. cut: the text ended before the call did.
    fault: what makes it malformed, for people; empty if nothing does.
    """

    name: str
    values: tuple[RawValue, ...] = ()
    cut: bool = False
    fault: str = ""


def decode_references(text: str) -> str:
    """XML's five entities and its numeric references, once; all others stay as they are."""
    return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, entity = reference.groups()
    if entity:
        return html.unescape(reference[0])
    code = int(decimal) if decimal else int(hexadecimal, 16)
    # The Char production of XML 1.0: no controls, no surrogates, nothing beyond Unicode.
    if code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD:
        return chr(code)
    return chr(code) if 0x10000 <= code <= 0x10FFFF else reference[0]


def _without_wrapping_newlines(text: str) -> str:
    for newline in ("\r\n", "\n"):
        if text.startswith(newline):
            text = text[len(newline) :]
            break
    for newline in ("\r\n", "\n"):
        if text.endswith(newline):
            return text[: -len(newline)]
    return text


@dataclass
class CallDraft:
    """The call being read.

    ghost: a tag of it has `Ġ` for a space, so all of it has. wrapper: those tags of an
    `<arguments>` wrapper that may still come. json_body: `{` stands where parameters should.
    stray_ghost: `Ġ` stood between tags, which is a blank if a later tag has it too.
    """

    name_parts: list[str] = field(default_factory=list)
    values: list[tuple[str, str, bool]] = field(default_factory=list)
    ghost: bool = False
    wrapper: tuple[str, ...] = (ARGUMENTS, ARGUMENTS_END)
    json_body: bool = False
    stray_ghost: bool = False
    fault: str = ""

    @property
    def name(self) -> str:
        """The tool's name as far as it has been read."""
        return self._attribute("".join(self.name_parts))

    def blame(self, fault: str) -> None:
        """Call it malformed; the first fault is the one that is told."""
        self.fault = self.fault or fault

    def is_blank(self, text: str) -> bool:
        """Nothing but blanks, where text between this call's tags is concerned."""
        return self._spaced(text).isspace()

    def read_between(self, text: str) -> None:
        """Take note of text that stands outside of the parameters, where none should."""
        if text.replace(GHOST_SPACE, " ").isspace():
            self.stray_ghost = self.stray_ghost or GHOST_SPACE in text
        else:
            self.blame("text outside of the parameters")

    def finish(self, *, cut: bool) -> RawCall:
        """The call as it now stands."""
        values: list[RawValue] = []
        for name, text, is_cdata in self.values:
            text = self._spaced(text)
            if not is_cdata:
                text = decode_references(_without_wrapping_newlines(text))
            values.append(RawValue(self._attribute(name), text))
        if self.stray_ghost and not self.ghost:
            self.blame("text outside of the parameters")
        return RawCall(self.name, tuple(values), cut, self.fault)

    def _spaced(self, text: str) -> str:
        return text.replace(GHOST_SPACE, " ") if self.ghost else text

    def _attribute(self, text: str) -> str:
        return decode_references(self._spaced(text))


def read_opener(scanner: Scanner, draft: CallDraft) -> Reading[bool]:
    """What follows `<function`, up to where it is certain whether this is a call.

    True: it is, and `<param`, `</function>` or, with `draft.json_body`, anything comes next.
    False: it is text; what was read is pending.
    """
    if not (yield from _read_attributes(scanner, draft, draft.name_parts)):
        return False
    while True:
        char = yield ""
        if draft.is_blank(char):
            continue
        if char == "{":
            draft.json_body = True
            draft.blame("JSON where parameters should be")
            return True
        if char != "<":
            scanner.read_again(1)
            return False
        tags = (PARAM, FUNCTION_END, THINK, THINK_END, *draft.wrapper[:1])
        tag = yield from read_tag(scanner, tags)
        if tag in (THINK, THINK_END):
            scanner.drop_last(len(tag))
        elif tag in draft.wrapper:
            draft.wrapper = draft.wrapper[1:]
        else:
            scanner.read_again(len(tag))
            return tag in tags


def read_body(scanner: Scanner, draft: CallDraft, done_with: Callable[[], None]) -> Reading[None]:
    """A call's inside, up to and with `</function>`; `done_with` is told of what is read."""
    while True:
        done_with()
        piece = yield "<"
        if piece != "<":
            if not draft.json_body:
                draft.read_between(piece)
            continue
        if draft.json_body:
            tag = yield from read_tag(scanner, (FUNCTION_END,))
        else:
            tag = yield from read_tag(
                scanner, (PARAM, FUNCTION_END, ARGUMENTS_END, THINK, THINK_END)
            )
        if tag == FUNCTION_END:
            done_with()
            if draft.wrapper == (ARGUMENTS_END,):
                draft.blame("<arguments> is not closed")
            return
        if tag == PARAM:
            if not draft.wrapper:
                draft.blame("a parameter after </arguments>")
            yield from _read_parameter(scanner, draft, done_with)
        elif tag in (THINK, THINK_END):
            scanner.drop_last(len(tag))
        elif draft.wrapper == (tag,):
            draft.wrapper = ()
        elif not draft.json_body:
            draft.blame("a tag that does not belong in a call")


def _read_parameter(
    scanner: Scanner, draft: CallDraft, done_with: Callable[[], None]
) -> Reading[None]:
    name_parts: list[str] = []
    if not (yield from _read_attributes(scanner, draft, name_parts)):
        draft.blame('a parameter is not <param name="...">')
        return
    text: list[str] = []
    tags = (PARAM_END, CDATA)
    while True:
        done_with()
        piece = yield "<"
        tag = (yield from read_tag(scanner, tags)) if piece == "<" else piece
        if tag == CDATA:
            value = yield from _read_cdata(scanner, draft, done_with)
            draft.values.append(("".join(name_parts), value, True))
            return
        if tag == PARAM_END:
            break
        text.append(tag)
        # CDATA is a whole value or none: further on the same characters are text.
        if not draft.is_blank(tag):
            tags = (PARAM_END,)
    value = "".join(text)
    if _NEXT_PARAMETER.search(value):
        draft.blame("a parameter is not closed before the next one")
    section = value.find(CDATA)
    if section >= 0 and value.find("]]>", section) >= 0:
        draft.blame("CDATA that is only a part of a value")
    draft.values.append(("".join(name_parts), value, False))


def _read_cdata(scanner: Scanner, draft: CallDraft, done_with: Callable[[], None]) -> Reading[str]:
    """Up to the `]]>` that is followed, after blanks, by `</param>`, and over it."""
    text: list[str] = []
    while True:
        done_with()
        piece = yield "]"
        if piece != "]":
            text.append(piece)
            continue
        brackets = 0
        while piece == "]":
            brackets += 1
            piece = yield ""
        if piece != ">" or brackets < 2:
            scanner.read_again(1)
            text.append("]" * brackets)
            continue
        text.append("]" * (brackets - 2))
        no_end = ["]]>"]
        char = yield ""
        while draft.is_blank(char):
            no_end.append(char)
            char = yield ""
        if char == "<":
            tag = yield from read_tag(scanner, (PARAM_END,))
            if tag == PARAM_END:
                return "".join(text)
            no_end.append(tag)
        else:
            scanner.read_again(1)
        text += no_end


class _NoTag(Exception):
    """The character just read shows that this is no tag."""


def _read_attributes(scanner: Scanner, draft: CallDraft, name: list[str]) -> Reading[bool]:
    """The rest of an opening tag after `<function` or `<param`: a name, and `>`.

    The name goes into `name` as it comes. False: this is no such tag; the character that spoiled
    it comes again. Attributes after the name make the call malformed.
    """
    try:
        char = yield from _skip_blanks(draft, (yield ""))
        for expected in "name":
            if char != expected:
                raise _NoTag
            char = yield ""
        char = yield from _read_attribute_value(draft, char, name)
        while char != ">":
            if not char.isalpha():
                raise _NoTag
            while char.isalnum() or char in ("_", "-", ":", "."):
                char = yield ""
            char = yield from _read_attribute_value(draft, char, [])
            draft.blame("an attribute other than name in a tag")
        return True
    except _NoTag:
        scanner.read_again(1)
        return False


def _read_attribute_value(draft: CallDraft, char: str, value: list[str]) -> Reading[str]:
    """`="..."`, from `char` on. Returns the first character after it that is no blank."""
    if (yield from _skip_blanks(draft, char)) != "=":
        raise _NoTag
    char = yield from _skip_blanks(draft, (yield ""))
    if char in ('"', "'"):
        quote = char
        while (char := (yield "")) != quote:
            if char in _NOT_IN_NAME:
                raise _NoTag
            value.append(char)
        char = yield ""
    else:
        while char != ">" and not _tag_blank(draft, char):
            if char in _NOT_IN_BARE_NAME:
                raise _NoTag
            value.append(char)
            char = yield ""
        if not value:
            raise _NoTag
    return (yield from _skip_blanks(draft, char))


def _skip_blanks(draft: CallDraft, char: str) -> Reading[str]:
    """The first character that is no blank, `char` or a later one."""
    while _tag_blank(draft, char):
        char = yield ""
    return char


def _tag_blank(draft: CallDraft, char: str) -> bool:
    """A blank inside of a tag, where `Ġ` can be nothing else."""
    if char == GHOST_SPACE:
        draft.ghost = True
    return char == GHOST_SPACE or char.isspace()
