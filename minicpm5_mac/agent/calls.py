"""The calls of one turn: each is checked, shown, allowed, run, told to the model, and stored."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.approval_desk import ApprovalDesk
from minicpm5_mac.agent.call_result import CallResult, denied, of_rejected
from minicpm5_mac.agent.call_shown import Shown, call_shown
from minicpm5_mac.agent.running_call import RunningCall
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.agent.undo.history import UndoTurn
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import (
    ApprovalWanted,
    CallParsed,
    CallRejected,
    Event,
    MessageSaved,
    Notice,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.definition import McpTool
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.reply.tool_schema import declared_tools
from minicpm5_mac.sandbox.policy import Limits
from minicpm5_mac.sandbox.worker_call import WorkerCall, run_worker
from minicpm5_mac.tools.argument_limits import refusal
from minicpm5_mac.tools.text_page import PAGE_BYTES, PAGE_LINES, read_page
from minicpm5_mac.tools.tool import Tool
from minicpm5_mac.visible_text import visible

SAME_CALLS = 3
_PROGRAMS = {"run_command": "command", "python": "code"}
log = logging.getLogger(__name__)


class Calls:
    """Handles the calls of one turn. `cancel` may be called from any thread.

    repeated: the call handled last came for the third time. waited: seconds that the user took.
    room: bytes that a result may have where the context has little left; None is no such bound.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        store: ConversationStore,
        conversation: str,
        desk: ApprovalDesk,
        cancelled: threading.Event,
    ) -> None:
        self.repeated = False
        self.waited = 0.0
        self.room: int | None = None
        self._toolbox = toolbox
        self._store = store
        self._conversation = conversation
        self._desk = desk
        self._cancelled = cancelled
        self._running: RunningCall | None = None
        self._undo_begun = False
        self._earlier: dict[bytes, tuple[int, CallResult]] = {}

    def cancel(self) -> None:
        """End the call that runs."""
        running = self._running
        if running is not None:
            running.cancel()

    def close(self) -> UndoTurn | None:
        """The turn is over: what it changed on disk, None for nothing."""
        self.cancel()
        return self._toolbox.undo.finish() if self._undo_begun else None

    def handle(
        self, made: CallParsed | CallRejected, parent: int | None, skip: str = ""
    ) -> Iterator[Event]:
        """One call, from its check to its stored result. skip: why it must not run at all."""
        number = next(self._toolbox.call_ids)
        began = time.monotonic()
        waited = self.waited
        call = made.call if isinstance(made, CallParsed) else None
        key = msgspec.json.encode(call if call is not None else made)
        count, earlier = self._earlier.get(key, (0, None))
        if skip:
            result = CallResult("cancelled", f"Not run: {skip}")
        elif earlier is not None:
            result = CallResult("repeated", self._again(earlier.text), earlier.status)
        elif isinstance(made, CallRejected):
            result = CallResult("refused", self._instruction(made))
        else:
            result = yield from self._call(number, made.call)
        if not skip and not self._cancelled.is_set():
            self._earlier[key] = (count + 1, earlier or result)
        self.repeated = not skip and count + 1 >= SAME_CALLS
        seconds = time.monotonic() - began - (self.waited - waited)
        name = call.name if call is not None else made.name  # type: ignore[union-attr]
        message = self._store.messages.add(
            self._conversation, parent, "tool", result.text, answers=call, cause=result.outcome
        )
        yield ToolFinished(number, name, result.outcome, result.text, seconds, result.status)
        yield MessageSaved(self._conversation, message, "tool", parent)

    def _again(self, text: str) -> str:
        """An earlier result, which may have been written when there was more room."""
        too_long = self.room is not None and len(text.encode()) > self.room
        return "[the same call as before: its result is above]" if too_long else text

    def _instruction(self, made: CallRejected) -> str:
        log.info("a call was refused: %r", made)
        declared = declared_tools(self._toolbox.schemas)
        tool = declared.get(made.name)
        return of_rejected(made, tuple(declared), tool.parameters if tool else ())

    def _call(self, number: int, call: ToolCall) -> Generator[Event, None, CallResult]:
        toolbox = self._toolbox
        tool = toolbox.tools[call.name]
        why = refusal(call, program=_PROGRAMS.get(call.name))
        if why:
            return CallResult("refused", f"Error: {why}")
        if call.name == "read_file" and call.arguments["path"] in toolbox.outputs:
            return self._page(call)
        shown = self._shown(tool, call)
        if isinstance(shown, CallResult):
            return shown
        judgement = toolbox.approvals.judge(
            call, tool.kind, definition=_definition(tool), confined=_confined(tool)
        )
        if judgement.verdict in ("denied", "refused"):
            return CallResult(judgement.verdict, judgement.words)
        allowed_by = judgement.by
        if judgement.verdict == "ask":
            decision = yield from self._ask(number, tool, call, shown)
            if decision is None:
                return CallResult("cancelled", "Not run: the user stopped.")
            if not decision.allow:
                return denied(visible(decision.word))
            allowed_by = "user"
        if tool.kind != "read":
            yield from self._begin_undo()
        yield ToolStarted(number, call, tool.kind, shown.title, shown.text, allowed_by)
        return (yield from self._run(number, tool, call, shown.stamp))

    def _shown(self, tool: Tool, call: ToolCall) -> Shown | CallResult:
        """What the user is shown of the call; for a write, what it would do to the file."""
        if tool.kind != "write":
            return call_shown(tool, call)
        assert tool.file is not None
        place = self._toolbox.place()
        preview = WorkerCall(tool.file, "preview", {**call.arguments, "place": place})
        try:
            answer = run_worker(self._toolbox.policy, preview, self._toolbox.wrapper)
        except Failure as failure:
            return CallResult("error", visible(f"Error: {failure}"))
        if answer.error is not None:
            return CallResult("error", visible(f"Error: {answer.error.message}"))
        return call_shown(tool, call, answer.value)

    def _ask(
        self, number: int, tool: Tool, call: ToolCall, shown: Shown
    ) -> Generator[Event, None, Decision | None]:
        began = time.monotonic()
        self._desk.ask(number)
        yield ApprovalWanted(number, call, tool.kind, shown.title, shown.text, shown.rule)
        decision = self._desk.wait()
        self.waited += time.monotonic() - began
        if decision is not None:
            try:
                self._toolbox.approvals.remember(call, decision, _definition(tool))
            except Failure as failure:
                yield Notice("rule_not_saved", str(failure))
        return decision

    def _begin_undo(self) -> Iterator[Event]:
        try:
            self._toolbox.undo.begin(self._conversation)
            self._undo_begun = True
        except OSError as error:
            text = f"Changes of this turn cannot be taken back: {error.strerror or error}."
            yield Notice("no_undo", text, once=True)

    def _run(
        self, number: int, tool: Tool, call: ToolCall, stamp: str | None
    ) -> Generator[Event, None, CallResult]:
        toolbox = self._toolbox
        place: dict[str, Any] = toolbox.place()
        policy = toolbox.policy
        if self.room is not None:
            policy = replace(policy, limits=_within(policy.limits, self.room))
            place["page_bytes"] = self._page_bytes
        if stamp is not None:
            place["expect"] = stamp
        output_name = f"output-{number}"
        running = RunningCall(
            tool, call, policy, place=place, output_name=output_name,
            wrapper=toolbox.wrapper, servers=toolbox.servers,
        )  # fmt: skip
        self._running = running
        if self._cancelled.is_set():
            running.cancel()
        try:
            for text in running.output():
                yield ToolOutput(number, text)
        except BaseException:
            running.cancel()
            raise
        finally:
            self._running = None
        result = running.result
        if result.spill is not None:
            toolbox.outputs[output_name] = result.spill
        if isinstance(running.value, dict) and "stamp" in running.value:
            toolbox.seen[running.value["path"]] = running.value["stamp"]
        if tool.kind != "read":
            # The world is another one now: what was read or tried before may come out otherwise.
            self._earlier.clear()
        return result

    @property
    def _page_bytes(self) -> int:
        return PAGE_BYTES if self.room is None else min(PAGE_BYTES, self.room)

    def _page(self, call: ToolCall) -> CallResult:
        """A page of output that was too long to be shown whole: a file of the app's own."""
        path = self._toolbox.outputs[call.arguments["path"]]
        arguments = call.arguments
        try:
            with path.open("rb") as file:
                text = read_page(
                    file,
                    arguments.get("start", 1),
                    arguments.get("lines", PAGE_LINES),
                    self._page_bytes,
                )
        except OSError:
            return CallResult("error", "Error: this output is no longer kept. Run the call again.")
        return CallResult("ok", visible(text))


def _definition(tool: Tool) -> str | None:
    return tool.digest if isinstance(tool, McpTool) else None


def _confined(tool: Tool) -> bool:
    """Whether a call stays in the sandbox, or goes where the user says it may unattended."""
    return not isinstance(tool, McpTool) or tool.server.local or tool.server.unattended


def _within(limits: Limits, room: int) -> Limits:
    """Less of a long output is kept, with the same share for its beginning and end."""
    whole = limits.output_head_bytes + limits.output_tail_bytes
    if room >= whole:
        return limits
    head = room * limits.output_head_bytes // whole
    return replace(limits, output_head_bytes=head, output_tail_bytes=room - head)
