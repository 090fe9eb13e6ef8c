"""One turn, or a few in a row, without the app: renders a session's events to pipes."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from minicpm5_mac import events
from minicpm5_mac.agent.session import Session
from minicpm5_mac.agent.settings import SessionSettings, decode_settings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.cli.chat import find_conversation
from minicpm5_mac.cli.download_line import DownloadLine
from minicpm5_mac.cli.tool_lines import ToolLines
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.engine.interface import Engine
from minicpm5_mac.events import Event
from minicpm5_mac.failure import Failure
from minicpm5_mac.visible_text import visible

TRUNCATED = 4
INTERRUPTED = 130

_CUT_OFF = {
    "max_tokens": "the limit of tokens for a reply is reached (--max-tokens).",
    "context": "the context is full (--context).",
    "loop": "it repeated itself.",
    "stop": "the model stopped inside of its thinking or of a call.",
}


@dataclass(frozen=True)
class OneShot:
    """How to say prompts and print replies.

    given: settings that came from flags and win over a stored conversation's. latest, resume: the
    stored conversation to go on with; without either nothing is stored.
    toolbox: the model gets tools; then the conversation is stored in any case, so that a crash
    loses nothing.
    """

    settings: SessionSettings
    make_engine: Callable[[str], Engine]
    given: frozenset[str] = frozenset()
    json: bool = False
    show_reasoning: bool = False
    latest: bool = False
    resume: str | None = None
    toolbox: Toolbox | None = None

    def run(self, prompts: Sequence[str]) -> int:
        """Exit code: 0 complete, 1 failed, 4 cut off by a limit, 130 interrupted.

        Raises Failure (3) where the model cannot be had.
        """
        with self._store() as store:
            conversation = find_conversation(store, self.latest, self.resume)
            settings = self._settings(store, conversation)
            engine = self.make_engine(settings.model)
            try:
                self._start(engine)
                session = Session(engine, store, conversation, settings, self.toolbox)
                return self._say(session, prompts)
            finally:
                if self.toolbox is not None:
                    self.toolbox.close()
                engine.close()

    @property
    def _kept(self) -> bool:
        return self.latest or self.resume is not None or self.toolbox is not None

    @contextlib.contextmanager
    def _store(self) -> Iterator[ConversationStore]:
        if self._kept:
            with ConversationStore() as store:
                yield store
            return
        with (
            tempfile.TemporaryDirectory(prefix="minicpm5-mac-") as folder,
            ConversationStore(Path(folder)) as store,
        ):
            yield store

    def _settings(self, store: ConversationStore, conversation: str | None) -> SessionSettings:
        import msgspec

        if conversation is None:
            return self.settings
        stored = decode_settings(store.get(conversation).settings)
        if stored is None:
            return self.settings
        return msgspec.structs.replace(
            stored, **{name: getattr(self.settings, name) for name in self.given}
        )

    def _start(self, engine: Engine) -> None:
        progress = DownloadLine(sys.stderr)
        for event in engine.start():
            self._print_json(event)
            if isinstance(event, events.DownloadProgress):
                progress.show(event)
            elif isinstance(event, events.ModelFailed):
                progress.finish()
                raise Failure(event.text, event.advice, exit_code=3)
        progress.finish()

    def _say(self, session: Session, prompts: Sequence[str]) -> int:
        code = 0
        for number, prompt in enumerate(prompts):
            if number and not self.json:
                print()
            stream = session.send(prompt)
            tool_lines = ToolLines(session.decide, self._write) if self.toolbox else None
            end: events.ReplyEnd | None = None
            full: events.ContextFull | None = None
            mid_line = False
            try:
                for event in stream:
                    self._print_json(event)
                    self._print(event)
                    mid_line = self._in_reasoning(event, mid_line)
                    if tool_lines is not None and not self.json:
                        tool_lines.show(event)
                    if isinstance(event, events.ReplyEnd):
                        end = event
                    elif isinstance(event, events.ContextFull):
                        full = event
            except KeyboardInterrupt:
                session.cancel()
                return INTERRUPTED
            finally:
                stream.close()  # type: ignore[attr-defined]
                self._end_line(mid_line)
            code = self._code(end, full)
            if code:
                break
        return code

    def _print_json(self, event: Event) -> None:
        # What is not kept has no place: its ids would name nothing that can be found again.
        if self.json and (self._kept or not isinstance(event, events.MessageSaved)):
            sys.stdout.buffer.write(events.encode(event) + b"\n")
            sys.stdout.buffer.flush()

    def _print(self, event: Event) -> None:
        if self.json:
            return
        if isinstance(event, events.Answer) and self.toolbox is None:
            self._write(sys.stdout, event.text)
        elif isinstance(event, events.Reasoning) and self.show_reasoning:
            self._write(sys.stderr, event.text)
        elif isinstance(event, events.ThinkingClosed) and self.show_reasoning:
            self._write(sys.stderr, "\n\n")
        elif isinstance(event, events.Notice):
            print(f"minicpm5-mac: {event.text}", file=sys.stderr)
        elif isinstance(event, events.HistoryShortened):
            print(
                f"minicpm5-mac: old content was left out of the prompt "
                f"({event.tokens_before:,} tokens, now {event.tokens_after:,}).",
                file=sys.stderr,
            )
        elif isinstance(event, events.CallRejected) and self.toolbox is None:
            print(f"minicpm5-mac: a call was not run: {event.detail}", file=sys.stderr)

    @staticmethod
    def _write(stream, text: str) -> None:
        # A pipe gets the model's text as it is; a terminal nothing that it would obey.
        stream.write(visible(text) if stream.isatty() else text)
        stream.flush()

    def _in_reasoning(self, event: Event, before: bool) -> bool:
        """Whether standard error now stands within a line of reasoning."""
        if isinstance(event, events.Reasoning):
            return self.show_reasoning and not self.json
        return before and not isinstance(event, events.ThinkingClosed)

    def _end_line(self, mid_line: bool) -> None:
        if mid_line:
            self._write(sys.stderr, "\n")
        if not self.json:
            sys.stdout.write("\n")
            sys.stdout.flush()

    @staticmethod
    def _code(end: events.ReplyEnd | None, full: events.ContextFull | None) -> int:
        """The exit code; why it is not 0 is said on standard error."""
        if end is None:
            return 1
        if end.finish == "failed":
            text = end.detail
            if end.cause == "context_full":
                text = _no_longer_fits(end, full)
            print(f"minicpm5-mac: {text}", file=sys.stderr)
            return 1
        if end.finish == "truncated":
            why = end.detail or f"the reply was cut off: {_CUT_OFF.get(end.cause, end.cause)}"
            print(f"minicpm5-mac: {why}", file=sys.stderr)
        return {"complete": 0, "truncated": TRUNCATED, "cancelled": INTERRUPTED}[end.finish]


def _no_longer_fits(end: events.ReplyEnd, full: events.ContextFull | None) -> str:
    if end.detail or full is None:
        return end.detail or "The conversation no longer fits the context."
    more = (
        ', or put when_full = "shorten" into the configuration file, which leaves out the oldest '
        "content"
        if full.can_shorten
        else ""
    )
    return (
        f"The conversation no longer fits the context of {full.limit:,} tokens: it has "
        f"{full.needed:,}, and a reply needs room.\nAsk for a larger --context{more}."
    )
