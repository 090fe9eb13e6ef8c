"""From a call as read to a call to run, or to the one reason why it must not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicpm5_mac.events import CallParsed, CallRejected
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.reply.call import RawCall
from minicpm5_mac.reply.literals import NoLiteral, read_literal
from minicpm5_mac.reply.tool_schema import ToolSchema

# Enough of a value or of a schema's complaint to see what is meant.
_MAX_DETAIL = 200


class WrongType(ValueError):
    """A value that its schema does not accept; says what is expected, for people."""


def judge(call: RawCall, tools: Mapping[str, ToolSchema]) -> CallParsed | CallRejected:
    """The first that holds: truncated, malformed, unknown_tool, duplicate_parameter,
    unknown_parameter, missing_parameter, wrong_type; otherwise the call, its values read."""
    if call.cut:
        return CallRejected("truncated", call.name, detail="the reply ended before the call did")
    if call.fault:
        return CallRejected("malformed", call.name, detail=call.fault)
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(tools) or "none"
        return CallRejected("unknown_tool", call.name, detail=_short(f"tools: {known}"))
    given: set[str] = set()
    for value in call.values:
        if value.name in given:
            return CallRejected("duplicate_parameter", call.name, value.name, "given twice")
        given.add(value.name)
    for value in call.values:
        if tool.parameter(value.name) is None:
            known = ", ".join(tool.parameters) or "none"
            detail = _short(f"parameters: {known}")
            return CallRejected("unknown_parameter", call.name, value.name, detail)
    for name in tool.required:
        if name not in given:
            return CallRejected("missing_parameter", call.name, name, "required")
    arguments: dict[str, Any] = {}
    for value in call.values:
        try:
            arguments[value.name] = read_value(tool, tool.parameter(value.name), value.text)
        except WrongType as error:
            return CallRejected("wrong_type", call.name, value.name, _short(str(error)))
    if error := tool.error_of_all(arguments):
        return CallRejected("wrong_type", call.name, detail=_short(error))
    return CallParsed(ToolCall(call.name, arguments))


def read_value(tool: ToolSchema, schema: object, text: str) -> Any:
    """The value that `text` has under `schema`, a part of the tool's. Raises WrongType.

    Where only a string is expected, it is the text. Where strings are not expected, the text is
    JSON or a Python literal. Where a string is one of several types, another type that the text
    spells and the schema accepts goes first. Where no type is declared, so does a quoted string.
    """
    types = tool.types(schema)
    readings: list[Any] = []
    trouble = ""
    if types != {"string"}:
        try:
            literal = read_literal(text)
            if not (types and "string" in types and isinstance(literal, str)):
                readings.append(literal)
        except NoLiteral as error:
            trouble = f"not {_short(repr(text), 60)} ({error})"
    if types is None or "string" in types:
        readings.append(text)
    for reading in readings:
        error = tool.error(schema, reading)
        if not error:
            return reading
        trouble = error
    expected = " or ".join(sorted(types)) if types else "what the tool declares"
    raise WrongType(f"expected {expected}: {trouble}")


def _short(text: str, length: int = _MAX_DETAIL) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
