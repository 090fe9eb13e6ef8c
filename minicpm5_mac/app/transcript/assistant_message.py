"""A reply: reasoning, answer and tool calls in the order in which they were written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message as TextualMessage
from textual.widget import Widget
from textual.widgets import Static

from minicpm5_mac import events
from minicpm5_mac.app.markdown import MarkdownStream
from minicpm5_mac.app.transcript.entry import Entry
from minicpm5_mac.app.transcript.following_scroll import FollowingScroll
from minicpm5_mac.app.transcript.message import CopyRequested, MessageView
from minicpm5_mac.app.transcript.reasoning_pane import ReasoningPane
from minicpm5_mac.app.transcript.tool_call_line import ToolCallLine
from minicpm5_mac.app.transcript.tool_run import ToolRun
from minicpm5_mac.messages import Message, ToolCall
from minicpm5_mac.visible_text import visible

# Why a reply ended, where the reader would wonder (events.ReplyEnd.cause).
_ENDS = {
    "max_tokens": "cut at the limit of tokens for a reply",
    "context": "cut: the context is full",
    "loop": "stopped: the answer repeated itself",
    "cancelled": "stopped",
    "context_full": "the conversation does not fit in the context",
    "error": "failed",
}


_Part = TypeVar("_Part", bound=Widget)


class RegenerateRequested(TextualMessage):
    """The user wants another reply in place of this one."""

    def __init__(self, message_id: str) -> None:
        super().__init__()
        self.message_id = message_id


class AssistantMessage(MessageView):
    """One reply. Give it the reply's events, in order, by `show`; others are ignored."""

    DEFAULT_CSS = Path(__file__).with_name("assistant_message.tcss").read_text(encoding="utf-8")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "regenerate", "Regenerate", tooltip="Ask for another reply"),
        Binding("t", "toggle_reasoning", "Show or hide reasoning"),
        Binding("R", "copy_reasoning", "Copy reasoning"),
    ]
    SPEAKER = "Assistant"

    def __init__(
        self, message_id: str = "", entry: Entry | None = None, *, continues: bool = False
    ) -> None:
        super().__init__(
            message_id or (entry.message_id if entry else ""),
            versions=entry.versions if entry else (0, 0),
            continues=entry.continues if entry else continues,
        )
        self._parts: list[Widget] = []
        self._composed = False
        self._waiting = Static("…", markup=False, classes="end")
        self._end = Static(markup=False, classes="end")
        self._ended = False
        if entry is not None:
            self._restore(entry)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self._parts if isinstance(part, MarkdownStream))

    @property
    def reasoning(self) -> str:
        """The whole thinking, as the model wrote it."""
        return "".join(pane.text for pane in self.panes)

    @property
    def panes(self) -> list[ReasoningPane]:
        """The message's reasoning panes, in order."""
        return [part for part in self._parts if isinstance(part, ReasoningPane)]

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that were whole and valid."""
        lines = (part for part in self._parts if isinstance(part, ToolCallLine))
        return [line.call for line in lines if line.call is not None]

    @property
    def runs(self) -> list[ToolRun]:
        """What became of the calls, in their order."""
        return [part for part in self._parts if isinstance(part, ToolRun)]

    @property
    def entry(self) -> Entry:
        pane = self.panes[-1] if self.panes else None
        message = Message("assistant", self.text, self.reasoning, tuple(self.calls))
        return Entry(
            self.message_id,
            message,
            thinking_tokens=pane.tokens if pane else None,
            thinking_budget=pane.budget if pane else None,
            thinking_cause=pane.cause if pane else None,
            end=self.end_note,
            results=tuple(run.result for run in self.runs if run.result is not None),
            continues=self.continues,
            versions=self.versions,
        )

    @property
    def end_note(self) -> str:
        """Why the reply ended, "" where it simply did."""
        return str(self._end.content)

    @property
    def ended(self) -> bool:
        """Whether the reply is over."""
        return self._ended

    @property
    def following(self) -> bool:
        """Whether the reader follows the end; the reasoning is not folded under a reader's eyes."""
        for node in self.ancestors:
            if isinstance(node, FollowingScroll):
                return node.following
        return True

    def code_blocks(self) -> list[tuple[str, str]]:
        streams = (part for part in self._parts if isinstance(part, MarkdownStream))
        return [block for stream in streams for block in stream.code_blocks()]

    def show(self, event: events.Event) -> None:
        """Show one event of the reply."""
        match event:
            case events.PromptProgress(done=done, total=total) if not self._parts:
                self._waiting.update(f"reading {done} of {total} tokens …")
            case events.Reasoning(text=text):
                self._open_pane().append(text)
            case events.ThinkingClosed(cause=cause, tokens=tokens):
                for pane in self.panes:
                    if not pane.is_closed:
                        pane.close(cause, tokens)
            case events.Answer(text=text):
                self.begin_answer().append(text)
            case events.CallStarted(name=name):
                self._add(ToolCallLine(name))
            case events.CallParsed(call=call):
                self._open_call(call.name).parsed(call)
            case events.CallRejected(name=name):
                self._open_call(name).rejected(event)
            case events.Progress(usage=usage):
                for pane in self.panes[-1:]:
                    if not pane.is_closed:
                        pane.set_budget(usage.thinking_tokens, usage.thinking_budget)
            case events.ReplyEnd(cause=cause, detail=detail, usage=usage):
                self._tell_budget(usage)
                note = _ENDS.get(cause, "")
                self.finish(f"{note}: {detail}" if note and detail else note or detail)
            case events.StepEnded(usage=usage):
                self._tell_budget(usage)
                self.finish()
            case events.ApprovalWanted(id=number):
                self._run_of(number, event.call.name).waits(event)
            case events.ToolStarted(id=number):
                self._run_of(number, event.call.name).started(event)
            case events.ToolOutput(id=number, text=text):
                self._run_of(number).wrote(text)
            case events.ToolFinished(id=number, name=name):
                self._run_of(number, name).finished(event)
            case _:
                pass

    def begin_answer(self) -> MarkdownStream:
        """The answer text that is being written; a new one after reasoning or a call."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, MarkdownStream):
            return last
        if self.following:
            for pane in self.panes:
                pane.fold()
        return self._add(MarkdownStream())

    def finish(self, note: str = "") -> None:
        """The reply is over. note: why, where the reader would wonder. More events may not come."""
        if self._ended:
            return
        self._ended = True
        for part in self._parts:
            if isinstance(part, MarkdownStream):
                part.finish()
            elif isinstance(part, ReasoningPane) and not part.is_closed:
                part.close("stopped")
            elif isinstance(part, ToolCallLine):
                part.abandoned()
        self._waiting.display = False
        self._end.update(visible(note))
        self._end.display = bool(note)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield from self._parts
        self._waiting.display = not self._parts and not self._ended
        yield self._waiting
        self._end.display = bool(self.end_note)
        yield self._end
        self._composed = True

    def action_regenerate(self) -> None:
        self.post_message(RegenerateRequested(self.message_id))

    def action_copy_reasoning(self) -> None:
        self.post_message(CopyRequested(self.reasoning, "reasoning"))

    def action_toggle_reasoning(self) -> None:
        for pane in self.panes:
            pane.action_toggle()

    def _tell_budget(self, usage: events.Usage) -> None:
        """A thinking that was shorter than the pause between two counts has its budget told now."""
        for pane in self.panes[-1:]:
            if pane.tokens is not None and pane.budget is None:
                pane.set_budget(pane.tokens, usage.thinking_budget)

    def _open_pane(self) -> ReasoningPane:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ReasoningPane) and not last.is_closed:
            return last
        return self._add(ReasoningPane())

    def _open_call(self, name: str) -> ToolCallLine:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ToolCallLine) and last.has_class("writing"):
            return last
        return self._add(ToolCallLine(name))

    def _run_of(self, number: int, name: str = "") -> ToolRun:
        """What a call's events are shown in: below its line, which is the next one without."""
        known = next((run for run in self.runs if run.number == number), None)
        return known or self._add_run(ToolRun(number), name)

    def _add_run(self, run: ToolRun, name: str) -> ToolRun:
        def named(part: Widget) -> str:
            return part.name_shown if isinstance(part, ToolCallLine) else ""

        parts = self._parts
        bare = [
            at
            for at, part in enumerate(parts)
            if isinstance(part, ToolCallLine)
            and not (at + 1 < len(parts) and isinstance(parts[at + 1], ToolRun))
            and not part.inside_thinking
        ]
        fitting = [at for at in bare if named(parts[at]) == name] or bare
        if not fitting:
            return self._add(run)
        line = parts[fitting[0]]
        parts.insert(fitting[0] + 1, run)
        line.add_class("with-run")
        if self._composed:
            self.mount(run, after=line)
        return run

    def _restore(self, entry: Entry) -> None:
        message = entry.message
        if message is not None and message.reasoning:
            pane = self._add(ReasoningPane(message.reasoning, expanded=False))
            if entry.thinking_tokens is not None:
                pane.set_budget(entry.thinking_tokens, entry.thinking_budget)
            pane.close(entry.thinking_cause or "model")
        if message is not None and message.content:
            self._add(MarkdownStream(message.content))
        for call in message.tool_calls if message is not None else ():
            self._add(ToolCallLine(call.name)).parsed(call)
        for number, result in enumerate(entry.results):
            self._add_run(ToolRun(-1 - number, result), result.name)
        self.finish(entry.end)

    def _add(self, part: _Part) -> _Part:
        previous = self._parts[-1] if self._parts else None
        if isinstance(previous, MarkdownStream):
            previous.finish()
        self._parts.append(part)
        self._waiting.display = False
        if self._composed:
            self.mount(part, before=self._waiting)
        return part
