"""The commands that start with a slash: their table, and reading one from the composer.

One table feeds completion, the command palette, the help screen and linear mode, so that a
command has one name and one description everywhere. `action` is the app's action of that name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SlashCommand:
    """name: without its slash. argument: what may follow, for people; empty where nothing may."""

    name: str
    description: str
    action: str
    argument: str = ""


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("new", "Start a new conversation", "new_conversation"),
    SlashCommand(
        "resume", "Open, search, rename or delete conversations", "conversations", "[words]"
    ),
    SlashCommand("rename", "Give this conversation a title", "rename", "[title]"),
    SlashCommand("regenerate", "Answer the last message again", "regenerate"),
    SlashCommand("edit", "Change an earlier message and send it as a branch", "edit_last"),
    SlashCommand("continue", "Let the last reply go on", "continue_reply"),
    SlashCommand("copy", "Copy the last reply, a code block, or everything", "copy", "[code|all]"),
    SlashCommand("export", "Write this conversation to a file", "export", "[FILE.md|FILE.json]"),
    SlashCommand("model", "Choose or download a model", "models", "[name]"),
    SlashCommand("think", "Thinking: on, off, or at most N tokens", "think", "[on|off|N]"),
    SlashCommand("answer", "Stop thinking and answer now", "answer_now"),
    SlashCommand("system", "Choose or write the system prompt", "system_prompt"),
    SlashCommand("sampling", "Temperature, top-p and the other settings", "sampling"),
    SlashCommand("tools", "Tools in a folder: turn on, see, change, turn off", "tools", "[DIR]"),
    SlashCommand("grant", "Tools: a further folder to read, or to write", "grant", "[write] DIR"),
    SlashCommand("mode", "Tools: ask, accept-edits or read-only", "mode", "[mode]"),
    SlashCommand("changes", "Files that tools changed: preview, take back, redo", "changes"),
    SlashCommand("stop-command", "End the running command alone", "cancel_call"),
    SlashCommand("theme", "Choose the colours", "theme_choice", "[name]"),
    SlashCommand("expand", "Give the composer the whole window, or take it back", "expand"),
    SlashCommand("restart", "Start the model process again", "restart_model"),
    SlashCommand("log", "Show the log files", "log"),
    SlashCommand("help", "Keys and commands", "help"),
    SlashCommand("quit", "Leave; the conversation and the draft are kept", "leave"),
)

_BY_NAME = {command.name: command for command in COMMANDS}


@dataclass(frozen=True)
class Typed:
    """A command line read from the composer; command is None where there is none of that name."""

    name: str
    argument: str
    command: SlashCommand | None


def read(text: str) -> Typed | None:
    """The slash command in `text`, or None where it is an ordinary message.

    Only a single line that starts with a slash and a word is one: a path such as `/etc/hosts`,
    a text of several lines, or one that starts with a blank is meant for the model.
    """
    line = text.rstrip()
    if not line.startswith("/") or "\n" in line:
        return None
    name, _, argument = line[1:].partition(" ")
    if not name or not name.replace("-", "").replace("_", "").isalpha() or not name.isascii():
        return None
    return Typed(name, argument.strip(), _BY_NAME.get(name.lower()))
