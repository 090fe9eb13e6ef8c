"""What the app says about tools: the mode, the workspace, the danger, the files that changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minicpm5_mac.agent.approval import MODES, Mode
from minicpm5_mac.agent.toolbox import UNCONFINED, Toolbox
from minicpm5_mac.events import FileChange
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.definition import McpTool
from minicpm5_mac.visible_text import unhidden

MODE_WORDS: dict[Mode, str] = {
    "ask": "asks",
    "accept-edits": "accepts edits",
    "read-only": "read only",
}
MODE_NOTES: dict[Mode, str] = {
    "ask": "Edits and commands are asked for.",
    "accept-edits": "Edits run unasked; commands are asked for.",
    "read-only": "Reading only: edits and commands are refused.",
}
OUTCOME_WORDS = {
    "ok": "done",
    "error": "failed",
    "refused": "refused",
    "denied": "denied",
    "repeated": "the same call: its earlier result",
    "cancelled": "stopped",
    "limit": "ended by a limit",
}
LISTED_FILES = 12


def next_mode(mode: Mode) -> Mode:
    """The mode that the key goes to from this one."""
    return MODES[(MODES.index(mode) + 1) % len(MODES)]


def read_mode(text: str) -> Mode | None:
    """The mode that somebody named, None for no such mode."""
    wanted = text.strip().lower().replace(" ", "-")
    return next((mode for mode in MODES if mode == wanted), None)


def read_grant(argument: str) -> tuple[Path, bool]:
    """The folder of `/grant [write] DIR` and whether it may be written. Raises Failure for none."""
    word, _, rest = argument.strip().partition(" ")
    writable = word == "write" and bool(rest.strip())
    folder = rest.strip() if writable else argument.strip()
    if not folder:
        raise Failure("Say which folder: /grant DIR to read it, /grant write DIR to change it.")
    return Path(folder).expanduser(), writable


def workspace_line(toolbox: Toolbox) -> str:
    """The folder that tools work in, and the others that were granted."""
    policy = toolbox.policy
    parts = [short_path(policy.workspace)]
    parts += [f"write {short_path(path)}" for path in policy.write]
    parts += [f"read {short_path(path)}" for path in policy.read]
    return " · ".join(parts)


def offered_tools(toolbox: Toolbox) -> tuple[str, ...]:
    """The tools, and below them those of each MCP server with where their calls go."""
    own = [name for name, tool in toolbox.tools.items() if not isinstance(tool, McpTool)]
    lines = [f"Tools: {', '.join(own) or 'none'}"]
    servers = toolbox.servers.servers if toolbox.servers is not None else ()
    for server in servers:
        theirs = [
            name
            for name, tool in toolbox.tools.items()
            if isinstance(tool, McpTool) and tool.server is server
        ]
        what = ", ".join(theirs) or "no tools"
        lines.append(f"MCP server {server.name} ({server.place}): {what}")
    return tuple(lines)


def sandbox_words(toolbox: Toolbox) -> str:
    """What runs in the sandbox, where that is not everything."""
    servers = toolbox.servers.servers if toolbox.servers is not None else ()
    outside = [server.name for server in servers if not server.local]
    if not outside:
        return "Everything runs in the sandbox, without network."
    return (
        "Everything runs in the sandbox, without network, but for the calls of "
        f"{', '.join(outside)}: what is in them is sent out of it."
    )


def mode_segment(toolbox: Toolbox | None) -> str:
    """The mode, for the status line; empty in plain chat."""
    if toolbox is None:
        return ""
    return "tools off" if toolbox.off else f"tools: {MODE_WORDS[toolbox.mode]}"


def danger(toolbox: Toolbox) -> str:
    """What the user must not forget for a moment; empty where all is as it should be."""
    if toolbox.off:
        return f"Tools are off, this is chat only: {toolbox.off}. Run `minicpm5-mac doctor`."
    return "" if toolbox.confined else UNCONFINED


def short_path(path: Path | str) -> str:
    """A path for people: the home folder as ~, nothing hidden in it."""
    path, home = Path(path), Path.home()
    inside = path.is_relative_to(home) and home != Path("/")
    text = str(Path("~") / path.relative_to(home)) if inside else str(path)
    return unhidden(text).replace("\n", "\u240a")


def changed_files(
    changes: Sequence[FileChange], workspace: Path, undo: str = "f7 shows them, and takes back"
) -> str:
    """What a turn changed on disk, a file a line; those that can be run are marked.

    undo: what shows these changes and takes them back, in the front end's words.
    """
    count = len(changes)
    lines = [f"{count} file{'' if count == 1 else 's'} changed ({undo}):"]
    for change in changes[:LISTED_FILES]:
        path = Path(change.path)
        inside = path.is_relative_to(workspace)
        name = short_path(path.relative_to(workspace) if inside else path)
        marks = " · can be run" if change.executable else ""
        marks += "" if change.kept else " · cannot be taken back"
        lines.append(f"  {change.change}: {name}{marks}")
    if count > LISTED_FILES:
        lines.append(f"  and {count - LISTED_FILES} more")
    return "\n".join(lines)
