"""Whether a call may run: the mode, saved rules, and the user's word, in that order.

A rule is a tool and, for what runs a program, the exact text: prefixes of shell text say nothing
about what it does (`git log; rm`). Deny wins over every allow. Rules that hold for good are kept
in the app's own data, apart from the folder they are for: a repository cannot grant itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from filelock import FileLock

from minicpm5_mac import locations
from minicpm5_mac.events import ToolKind
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.visible_text import visible
from minicpm5_mac.whole_file import write_whole

Mode = Literal["ask", "accept-edits", "read-only"]
MODES: tuple[Mode, ...] = ("ask", "accept-edits", "read-only")
Scope = Literal["once", "session", "folder"]

DENIED_BY_RULE = "Denied by the user's rule. Do it in another way, or answer."
NOBODY_HERE = "Refused: nobody is here to allow it. Do without, or answer."
OUTSIDE = (
    "Refused: this call goes outside of the sandbox, and nobody is here to allow it. "
    "Do without, or answer."
)
READ_ONLY = "Refused: not allowed in read-only mode. Read and search only, or answer."
_EXACT = {"run_command": "command", "python": "code"}


@dataclass(frozen=True)
class Decision:
    """The user's answer to ApprovalWanted.

    scope: `once`, for this `session`, or always in this `folder`. word: goes to the model with
    a denial.
    """

    allow: bool
    scope: Scope = "once"
    word: str = ""


@dataclass(frozen=True)
class Judgement:
    """What the mode and the rules say of a call.

    verdict: it runs unasked, the user is asked, or it does not run: `denied` by a rule of the
    user's, `refused` by the mode. by: what let it run. words: for the model, why it does not.
    """

    verdict: Literal["run", "ask", "denied", "refused"]
    by: Literal["mode", "rule"] = "mode"
    words: str = ""


class Rule(msgspec.Struct, frozen=True):
    """All calls of a tool, or with `exact` those whose program text is exactly that.

    definition: of an MCP server's tool, the digest of what the server said of it; what it says
    otherwise is allowed by no such rule. It is denied all the same.
    """

    tool: str
    allow: bool
    exact: str | None = None
    definition: str | None = None

    def covers(self, call: ToolCall, definition: str | None = None) -> bool:
        if call.name != self.tool:
            return False
        if self.allow and self.definition != definition:
            return False
        return self.exact is None or self.exact == call.arguments.get(_EXACT.get(call.name, ""))

    def words(self) -> str:
        """What the rule says, for people."""
        verb = "allow" if self.allow else "deny"
        if self.exact is None:
            as_now = ", as its MCP server defines it now" if self.definition and self.allow else ""
            return f"{verb} every call of {visible(self.tool)}{as_now}"
        return f"{verb} {visible(self.tool)} with exactly: {visible(self.exact)}"


def rule_for(call: ToolCall, allow: bool, definition: str | None = None) -> Rule:
    """The rule that a decision with a lasting scope saves. definition: see `Rule`."""
    exact = call.arguments.get(_EXACT[call.name]) if call.name in _EXACT else None
    return Rule(call.name, allow, exact, definition)


class Approvals:
    """The mode and the rules of one session in one folder. Any thread may call it."""

    def __init__(self, workspace: Path, mode: Mode = "ask", commands: bool | None = None) -> None:
        """commands: for scripts, whether commands and other tools run (True) or are refused.

        With `commands` given nobody is ever asked: what would ask in `mode` is refused.
        """
        self._lock = threading.Lock()
        self._file = SavedRules(workspace)
        self._session: list[Rule] = []
        self._mode: Mode = mode
        self._commands = commands

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those of this session, then those kept for the folder."""
        with self._lock:
            return (*self._session, *self._file.rules)

    def judge(
        self,
        call: ToolCall,
        kind: ToolKind,
        *,
        definition: str | None = None,
        confined: bool = True,
    ) -> Judgement:
        """Whether a call runs. definition: see `Rule`.

        confined: it stays in the sandbox; otherwise nothing but a rule or the user lets it run.
        """
        covering = [rule for rule in self.rules if rule.covers(call, definition)]
        if any(not rule.allow for rule in covering):
            return Judgement("denied", words=DENIED_BY_RULE)
        if kind == "read":
            return Judgement("run")
        if self._mode == "read-only":
            return Judgement("refused", words=READ_ONLY)
        if covering:
            return Judgement("run", "rule")
        if (self._commands and confined) or (kind == "write" and self._mode == "accept-edits"):
            return Judgement("run")
        if self._commands is None:
            return Judgement("ask")
        return Judgement("refused", words=NOBODY_HERE if confined else OUTSIDE)

    def remember(self, call: ToolCall, decision: Decision, definition: str | None = None) -> None:
        """Save the rule of a decision that is to last. Raises Failure if it cannot be kept."""
        if decision.scope == "once":
            return
        rule = rule_for(call, decision.allow, definition)
        with self._lock:
            if decision.scope == "folder":
                self._file.add(rule)
            else:
                self._session.append(rule)

    def forget(self, rule: Rule) -> None:
        """Take a rule back."""
        with self._lock:
            self._session = [other for other in self._session if other != rule]
            if rule in self._file.rules:
                self._file.remove(rule)


class SavedRules:
    """The rules kept for one folder: a JSON file of all folders in the app's data.

    It is read anew each time: what is denied in one session is denied in another that runs.
    """

    def __init__(self, workspace: Path) -> None:
        """Raises Failure where the file cannot be read: a denial in it would be lost."""
        self._workspace = str(workspace)
        _load()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(_load().get(self._workspace, ()))

    def add(self, rule: Rule) -> None:
        """Raises Failure where it cannot be saved."""
        self._change(lambda rules: [*(other for other in rules if other != rule), rule])

    def remove(self, rule: Rule) -> None:
        self._change(lambda rules: [other for other in rules if other != rule])

    def _change(self, change: Callable[[list[Rule]], list[Rule]]) -> None:
        path = _path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(path.with_suffix(".lock")):
                everything = _load()
                everything[self._workspace] = change(everything.get(self._workspace, []))
                write_whole(path, msgspec.json.format(msgspec.json.encode(everything)))
        except OSError as error:
            raise Failure(
                f"the approval could not be saved in {path}: {error.strerror}",
                "It holds for this call only.",
            ) from error


def _path() -> Path:
    return locations.data_dir() / "approvals.json"


def _load() -> dict[str, list[Rule]]:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=dict[str, list[Rule]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise Failure(
            f"the saved approvals in {_path()} cannot be read: {error}",
            "Repair the file, or remove it: then everything is asked again.",
        ) from error
