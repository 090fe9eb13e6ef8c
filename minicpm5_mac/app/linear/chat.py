"""The conversation in linear mode: read a line, write the reply, until the user leaves."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec

from minicpm5_mac import locations
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app import slash_commands
from minicpm5_mac.app.attached_files import attached
from minicpm5_mac.app.conversation_rows import find_rows
from minicpm5_mac.app.linear.speaker import Speaker
from minicpm5_mac.app.linear.tool_lines import ToolLines
from minicpm5_mac.app.live_chat import LiveChat, Opened
from minicpm5_mac.app.model_places import refusal
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.sampling_form import read_thinking
from minicpm5_mac.app.tool_words import (
    MODE_NOTES,
    danger,
    mode_segment,
    offered_tools,
    read_grant,
    read_mode,
    short_path,
    workspace_line,
)
from minicpm5_mac.conversations.export import export_json, export_markdown
from minicpm5_mac.events import ApprovalWanted, Event, ModelReady
from minicpm5_mac.failure import Failure
from minicpm5_mac.sandbox.policy import Policy

PROMPT = "You: "
_LISTED = 20
_HELP = """\
Write a message and press Enter. A backslash at a line's end goes on in the next line.
@FILE in a message attaches a text file. Ctrl+C stops a reply; Ctrl+D leaves.
Commands:
  /new                  start a new conversation
  /resume [WORDS]       list conversations, or those with these words; then /resume NUMBER
  /rename TITLE         give this conversation a title
  /regenerate [shorten] answer the last message again
  /edit TEXT            send another version of the last message, as a branch
  /continue             let a cut reply go on
  /export FILE          write the conversation, as JSON where the name ends in .json
  /model NAME           load another model
  /think on|off|N       thinking: without a limit, not at all, at most N tokens
  /reasoning on|off     write the thinking too
  /system [TEXT]        the system prompt of this conversation; nothing takes it away
  /tools [FOLDER]       let the model use tools in a folder
  /grant [write] FOLDER let tools read a further folder, or change it, for this session
  /mode NAME            tools: ask, accept-edits or read-only
  /undo                 take the latest changes to files back; again: bring them back
  /restart              start the model again
  /log                  where the log files are
  /help  /quit"""


def run_linear(
    options: AppOptions,
    read: Callable[[str], str] = input,
    out: TextIO | None = None,
) -> int:
    """Chat until the user leaves; returns the exit code. read: asks for one line."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  editing and history for `input`
    chat = LinearChat(options, read, out or sys.stdout)
    try:
        return chat.run()
    finally:
        chat.live.close()


class LinearChat:
    """One user, one conversation at a time, one line after the other."""

    def __init__(self, options: AppOptions, read: Callable[[str], str], out: TextIO) -> None:
        self.live = LiveChat(options)
        self._read = read
        self._notice = options.notice
        self._say = Speaker(out, bell=options.bell)
        self._tools = ToolLines(self._say.line, read)
        self._listed: list[str] = []

    def run(self) -> int:
        if self._notice:
            self._say.line(self._notice)
        self._greet(self.live.open())
        self._tell_tools()
        if self._load(self.live.start):
            self._say.line("/help lists the commands.")
        while True:
            try:
                text = self._message()
            except EOFError:
                return 0
            except KeyboardInterrupt:
                self._say.line("Ctrl+D or /quit leaves.")
                continue
            try:
                if not self._answer(text):
                    return 0
            except Failure as failure:
                self._say.line(f"Error: {failure}")
            except KeyboardInterrupt:
                self._say.line("Stopped.")

    def _tell_tools(self) -> None:
        toolbox = self.live.toolbox
        if toolbox is not None:
            news = self.live.prepare_tools()
            mode = mode_segment(toolbox)
            self._say.line(danger(toolbox) or f"Workspace {workspace_line(toolbox)}, {mode}.")
            for text in (*news, *offered_tools(toolbox)[1:]):
                self._say.line(text)

    def _message(self) -> str:
        lines = [self._read(PROMPT)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._read("and: "))
        return "\n".join(lines)

    def _answer(self, text: str) -> bool:
        """Do what one input asks; False to leave."""
        typed = slash_commands.read(text)
        if typed is not None:
            return self._command(typed.name.lower(), typed.argument)
        if text.strip():
            files = attached(text, Path())
            self._reply(self.live.session.send(text, files))
        return True

    def _reply(self, events: Iterator[Event]) -> None:
        try:
            self._say.reply(self._with_tools(events))
        except KeyboardInterrupt:
            # The session has ended the reply and kept what was said.
            events.close()  # type: ignore[attr-defined]
            self._say.line("Stopped.")

    def _with_tools(self, events: Iterator[Event]) -> Iterator[Event]:
        """The events, each of a tool's said, and what waits for the user's word answered."""
        toolbox = self.live.toolbox
        for event in events:
            if toolbox is not None:
                self._tools.show(event, toolbox)
                if isinstance(event, ApprovalWanted):
                    self.live.session.decide(event.id, self._tools.ask(event, toolbox))
            yield event

    def _load(self, start: Callable[[], Iterator[Event]]) -> bool:
        try:
            return isinstance(self._say.model(start()), ModelReady)
        except KeyboardInterrupt:
            self._say.line("The model was not loaded. /restart tries again.")
            return False

    def _greet(self, opened: Opened) -> None:
        if opened.messages:
            self._say.line(f"Conversation: {opened.title}, {len(opened.messages)} messages.")
            for message in opened.messages[-2:]:
                who = "You" if message.role == "user" else "Answer"
                self._say.line(f"{who}: {message.content}")
        if opened.draft:
            self._say.line(f"Unsent draft: {opened.draft}")

    def _command(self, name: str, argument: str) -> bool:
        live, say = self.live, self._say.line
        match name:
            case "quit":
                return False
            case "new":
                self._greet(live.open_conversation(None))
                say("A new conversation.")
            case "resume":
                self._resume(argument)
            case "rename":
                say(f"Title: {live.store.rename(self._conversation(), argument)}")
            case "regenerate":
                self._reply(live.session.regenerate(shorten=argument == "shorten"))
            case "edit":
                mine = [m for m in live.session.messages() if m.role == "user"]
                if not mine:
                    raise Failure("There is no message to edit yet.")
                files = attached(argument, Path())
                self._reply(live.session.edit(mine[-1].id, argument, files or None))
            case "continue":
                self._reply(live.session.continue_reply())
            case "export":
                self._export(argument)
            case "model" if argument:
                refused = refusal(argument)
                if refused is not None:
                    raise refused  # what is loaded stays
                self._load(lambda: live.start_again(argument))
            case "restart":
                self._load(live.start_again)
            case "think":
                live.change(
                    msgspec.structs.replace(live.settings, thinking=read_thinking(argument))
                )
                say("Thinking changed.")
            case "reasoning":
                self._say.with_reasoning = argument != "off"
                say(f"Thinking is {'' if self._say.with_reasoning else 'not '}written.")
            case "system":
                live.change(msgspec.structs.replace(live.settings, system_prompt=argument))
                say("System prompt changed.")
            case "tools":
                live.use_tools(Toolbox(Policy(Path(argument or ".").expanduser())))
                self._tell_tools()
            case "grant":
                folder, writable = read_grant(argument)
                if live.toolbox is None:
                    raise Failure("There are no tools here: /tools turns them on.")
                live.toolbox.grant(folder, writable=writable)
                say(f"Tools work in {workspace_line(live.toolbox)}, for this session.")
            case "mode":
                mode = read_mode(argument)
                if live.toolbox is None or mode is None:
                    raise Failure("Say /mode ask, accept-edits or read-only, where tools are on.")
                live.toolbox.mode = mode
                say(MODE_NOTES[mode])
            case "undo":
                self._undo()
            case "log":
                say(f"Log files are in {locations.log_dir()}")
            case "help":
                for line in _HELP.splitlines():
                    say(line)
            case _:
                say(f"/{name} is not a command here. /help lists them.")
        return True

    def _undo(self) -> None:
        """Take the latest turn's changes to files back; once more brings them again."""
        toolbox = self.live.toolbox
        turns = toolbox.undo.turns() if toolbox is not None else ()
        if toolbox is None or not turns:
            raise Failure("No turn has changed a file here.")
        taken = toolbox.undo.take_back(turns[0].id)
        for change in taken.turn.changes:
            self._say.line(f"Taken back: {short_path(change.path)}")
        for path, why in taken.left:
            self._say.line(f"Left as it is: {short_path(path)}: {why}")

    def _conversation(self) -> str:
        if self.live.conversation is None:
            raise Failure("There is no conversation yet: send a message first.")
        return self.live.conversation

    def _resume(self, argument: str) -> None:
        if argument.isdecimal() and 0 < int(argument) <= len(self._listed):
            self._greet(self.live.open_conversation(self._listed[int(argument) - 1]))
            return
        rows = find_rows(self.live.store, argument)[:_LISTED]
        self._listed = [row.conversation.id for row in rows]
        for number, row in enumerate(rows, 1):
            self._say.line(f"{number}. {row.conversation.title}")
        self._say.line("/resume NUMBER opens one." if rows else "Nothing found.")

    def _export(self, argument: str) -> None:
        if not argument:
            raise Failure("Say where to: /export FILE.")
        path = Path(argument).expanduser()
        if path.exists():
            raise Failure(f"{path} exists already.", "Choose another name.")
        write = export_json if path.suffix.lower() == ".json" else export_markdown
        try:
            path.write_text(write(self.live.store, self._conversation()), encoding="utf-8")
        except OSError as error:
            raise Failure(f"{path} cannot be written: {error.strerror or error}.") from error
        self._say.line(f"Written to {path}")
