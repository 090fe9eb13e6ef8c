"""What became of a call, in the words that go back to the model."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from minicpm5_mac.events import CallRejected
from minicpm5_mac.mcp_servers.answer import McpAnswer
from minicpm5_mac.sandbox.output import KeptOutput, OutputKeeper
from minicpm5_mac.sandbox.policy import Limits
from minicpm5_mac.sandbox.process import Ended, Reason
from minicpm5_mac.sandbox.run_folder import open_spill
from minicpm5_mac.visible_text import visible

Outcome = Literal["ok", "error", "refused", "denied", "repeated", "cancelled", "limit"]


@dataclass(frozen=True)
class CallResult:
    """outcome, status: as in ToolFinished. text: what the model is given.

    spill: a file with more of the output than the text shows.
    """

    outcome: Outcome
    text: str
    status: int | None = None
    spill: Path | None = None


def of_command(ended: Ended, output_name: str) -> CallResult:
    """Of a program that ran. output_name: under which read_file pages through all of it."""
    text, spill = _shown(ended.stdout, output_name)
    note, outcome = _how_it_ended(ended)
    text = f"{text.rstrip()}\n{note}".lstrip("\n") if note else text or "[no output]"
    return CallResult(outcome, text, ended.status, spill)


def of_value(value: Any, printed: str, limits: Limits, output_name: str) -> CallResult:
    """Of a tool that returned: text as it is, other values as JSON, long ones shortened."""
    if value is None:
        text = printed or "[done]"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    keeper = OutputKeeper(limits, open_spill)
    keeper.add(text.encode(errors="replace"))
    shown, spill = _shown(keeper.kept(), output_name)
    return CallResult("ok", shown or "[nothing]", spill=spill)


def of_mcp(answer: McpAnswer, limits: Limits, output_name: str) -> CallResult:
    """Of an MCP server's tool: what it said, long answers shortened."""
    result = of_value(answer.text, "", limits, output_name)
    return replace(result, outcome=answer.outcome)


def denied(word: str) -> CallResult:
    """The user said no."""
    said = f"Denied by the user: {word.strip()}" if word.strip() else "The user denied this call."
    return CallResult("denied", f"{said}\nDo it in another way, or answer.")


def of_rejected(event: CallRejected, tools: tuple[str, ...], parameters: tuple[str, ...]) -> str:
    """A short instruction for a call that was not to be run. parameters: what the tool takes."""
    name, field = event.name or "the tool", event.parameter
    known = ", ".join(parameters) or "none"
    match event.reason:
        case "unknown_tool":
            text = f"There is no tool {name}. Tools: {', '.join(tools)}."
        case "missing_parameter":
            text = f"{field} is missing. {name} takes: {known}."
        case "unknown_parameter":
            text = f"{name} has no parameter {field}. It takes: {known}."
        case "duplicate_parameter":
            text = f"{field} was given twice. Give it once."
        case "wrong_type":
            text = f"{field or 'The arguments'}: {event.detail}."
        case "truncated":
            text = f"The call of {name} was cut off. Make it shorter, or do it in parts."
        case "malformed":
            text = f"The call of {name} is not well formed: {event.detail}. Write it again."
        case "inside_thinking":
            text = "A call inside of thinking is not run. Make it after thinking."
    return visible(text)


def _shown(kept: KeptOutput, output_name: str) -> tuple[str, Path | None]:
    text = visible(kept.text())
    if kept.spill is None or not kept.omitted or kept.binary:
        return text, None
    held = "" if kept.spilled == kept.total else f", its first {kept.spilled:,} are kept"
    note = f"[{kept.total:,} bytes{held}; read_file with path {output_name} shows them in pages]"
    return f"{text.rstrip()}\n{note}", kept.spill


def _how_it_ended(ended: Ended) -> tuple[str, Outcome]:
    after = f"after {ended.seconds:.1f} s"
    match ended.reason:
        case Reason.EXIT:
            ok = ended.status == 0
            return ("" if ok else f"[exit status {ended.status}]"), "ok" if ok else "error"
        case Reason.TIMEOUT:
            return f"[time limit: ended {after}. Set timeout (seconds), or do less.]", "limit"
        case Reason.CANCELLED:
            return f"[the user cancelled it {after}]", "cancelled"
        case Reason.OUTPUT:
            return f"[killed {after}: too much output. Print less.]", "limit"
        case Reason.MEMORY:
            return f"[killed {after}: too much memory]", "limit"
        case Reason.PROCESSES:
            return f"[killed {after}: too many processes]", "limit"
        case Reason.DISK:
            return f"[killed {after}: the disk is nearly full. Tell the user.]", "limit"
