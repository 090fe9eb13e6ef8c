"""Calls of tools as plain lines, and the user's word on them, asked on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from minicpm5_mac import events
from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.events import Event
from minicpm5_mac.typed_ahead import drop_typed_ahead
from minicpm5_mac.visible_text import unhidden, visible

_QUESTION = "[y] once, [s] this session, [f] always in this folder, [n] no: "
_QUESTION_ONCE = "[y] once, [n] no: "
_ALLOWED: dict[str, Decision] = {
    "y": Decision(True),
    "yes": Decision(True),
    "s": Decision(True, "session"),
    "f": Decision(True, "folder"),
}
_DENIED = ("n", "no")
RESULT_LINES = 3


def terminal() -> TextIO | None:
    """What answers can be read from: standard input, or the terminal behind a pipe."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    if sys.stdin is not None and sys.stdin.isatty():
        return sys.stdin
    try:
        return open("/dev/tty", encoding="utf-8", errors="replace")
    except OSError:
        return None


class ToolLines:
    """Renders a turn with tools: its answer to standard output, all else to standard error.

    What is said before a call is no answer; it is known for one when the turn has ended.
    """

    def __init__(
        self, decide: Callable[[int, Decision], bool], write: Callable[[TextIO, str], None]
    ) -> None:
        """decide: takes the user's word on a call. write: text to a stream, as that one needs."""
        self._decide = decide
        self._write = write
        self._said: list[str] = []
        self._open_line = False
        self._told: set[int] = set()

    def show(self, event: Event) -> None:
        """Print an event; ApprovalWanted is answered before this returns."""
        match event:
            case events.Answer():
                self._said.append(event.text)
            case events.StepEnded() if self._said:
                self._say("".join(self._said))
                self._said.clear()
            case events.ReplyEnd():
                self._write(sys.stdout, "".join(self._said))
            case events.ApprovalWanted():
                self._told.add(event.id)
                self._say(unhidden(f"? {event.title}\n{event.shown.rstrip()}"))
                if event.rule:
                    self._say(unhidden(f"  (session and folder: {event.rule})"))
                self._decide(event.id, self._answer(bool(event.rule)))
            case events.ToolStarted():
                self._told.add(event.id)
                self._say(unhidden(f"→ {event.title}"))
            case events.ToolOutput():
                sys.stderr.write(event.text)
                sys.stderr.flush()
                self._open_line = not event.text.endswith("\n")
            case events.ToolFinished():
                self._finished(event)
            case events.FilesChanged():
                for change in event.changes:
                    marks = " (can be run)" if change.executable else ""
                    marks += "" if change.kept else " (cannot be taken back)"
                    self._say(f"  {change.change}: {visible(change.path)}{marks}")

    def _finished(self, event: events.ToolFinished) -> None:
        status = "" if event.status is None else f", status {event.status}"
        if event.id not in self._told:  # it never ran, and nobody was asked
            self._say(unhidden(f"→ {event.name}"))
        line = f"  {event.outcome} ({event.seconds:.1f} s{status})"
        if event.outcome in ("ok", "repeated"):
            self._say(f"{line}: {len(event.result.splitlines()):,} lines")
            return
        self._say(line)
        for text in event.result.splitlines()[-RESULT_LINES:]:
            self._say(f"  {text}")

    def _answer(self, can_be_kept: bool) -> Decision:
        source = terminal()
        while source is not None:
            drop_typed_ahead(source)
            self._ask(_QUESTION if can_be_kept else _QUESTION_ONCE)
            line = source.readline()
            if not line:
                break
            # The whole word: "stop" is no s, and "forbid" no f.
            word = line.strip().lower()
            decision = _ALLOWED.get(word)
            if decision is not None and (can_be_kept or decision.scope == "once"):
                return decision
            if word in _DENIED:
                self._ask("a word to the model (or Enter): ")
                return Decision(False, word=source.readline().strip())
        return Decision(False, word="nobody answered")

    def _ask(self, question: str) -> None:
        sys.stderr.write(question)
        sys.stderr.flush()

    def _say(self, text: str) -> None:
        if self._open_line:
            sys.stderr.write("\n")
            self._open_line = False
        print(visible(text), file=sys.stderr, flush=True)
