"""Every key of the configuration file: its kind, its default, and what it means.

This table is the only list: reading the file, `minicpm5-mac config show` and the README's table
are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minicpm5_mac.configuration.kinds import (
    Address,
    Folders,
    Headers,
    Kind,
    Number,
    OneOf,
    Switch,
    Text,
    Thinking,
    VariableName,
    Variables,
    Whole,
    Words,
)
from minicpm5_mac.mcp_servers.server import CALL_SECONDS


@dataclass(frozen=True)
class Key:
    """One key. name: dotted, as in TOML. default: in the file's own terms, None for "not set".

    unset: what happens where it is not set and has no default.
    """

    name: str
    kind: Kind
    default: Any
    meaning: str
    unset: str = ""

    @property
    def table(self) -> str:
        """The TOML table it stands in; empty for the top of the file."""
        return self.name.rpartition(".")[0]

    @property
    def last_name(self) -> str:
        return self.name.rpartition(".")[2]


_MODEL_DECIDES = "the model's own"

KEYS: tuple[Key, ...] = (
    Key(
        "model",
        Text(),
        "openbmb/MiniCPM5-2B-MLX",
        "Model to load: 2b, 1b, demo, a hub repository, or a folder.",
    ),
    Key("system_prompt", Text(may_be_empty=True), "", "System prompt of new conversations."),
    Key(
        "thinking",
        Thinking(),
        "on",
        "Thinking before the answer: without a limit, not at all, or a budget in tokens.",
    ),
    Key(
        "max_tokens",
        Whole(1),
        None,
        "Most tokens a reply may have, thinking included.",
        unset="what the context holds",
    ),
    Key(
        "context",
        Whole(256),
        None,
        "Context length in tokens.",
        unset="what the model was made for, or what fits",
    ),
    Key(
        "kv_bits",
        OneOf((16, 8, 4, "auto")),
        16,
        "Bits per value of the KV cache; auto takes fewer only where the context needs it.",
    ),
    Key(
        "when_full",
        OneOf(("ask", "shorten")),
        "ask",
        "When a conversation no longer fits: ask, or leave out the oldest content at once.",
    ),
    Key(
        "keep_reasoning",
        Switch(),
        True,
        "Earlier turns keep their reasoning in the prompt.",
    ),
    Key("sampling.temperature", Number(0, 5), None, "Temperature; 0 is greedy.", _MODEL_DECIDES),
    Key("sampling.top_p", Number(0, 1), None, "Nucleus sampling.", _MODEL_DECIDES),
    Key("sampling.min_p", Number(0, 1), None, "Least share of the best token's.", _MODEL_DECIDES),
    Key("sampling.top_k", Whole(0), None, "Most tokens to draw from; 0 is off.", _MODEL_DECIDES),
    Key(
        "sampling.repetition_penalty",
        Number(0.1, 5),
        None,
        "Penalty on tokens already written; 1 is off.",
        _MODEL_DECIDES,
    ),
    Key(
        "sampling.seed",
        Whole(0, 2**32 - 1),
        None,
        "Makes a reply reproducible.",
        unset="another one for each reply",
    ),
    Key(
        "app.theme",
        OneOf(("auto", "dark", "light", "256", "light-256")),
        "auto",
        "Colours; the two with 256 are for terminals without true colour.",
    ),
    Key(
        "app.linear",
        Switch(),
        False,
        "Plain lines without boxes or redraw, for screen readers.",
    ),
    Key("app.bell", Switch(), False, "Ring the terminal's bell at the end of a reply."),
    Key(
        "app.copy_on_select",
        Switch(),
        False,
        "Text selected with the mouse goes to the clipboard at once.",
    ),
)

BY_NAME = {key.name: key for key in KEYS}

PROMPTS = Key(
    "prompts.NAME",
    Text(),
    None,
    "A system prompt of your own, to choose by NAME in the app.",
    unset="only the built-in ones",
)
"""The one table whose keys the user names."""

MCP_KEYS: tuple[Key, ...] = (
    Key(
        "mcp.NAME.command",
        Words(each=False, what="words"),
        None,
        "An MCP server: the program and its arguments, run in the sandbox, without network.",
        unset="give url instead",
    ),
    Key("mcp.NAME.env", Variables(), None, "What it finds in its environment.", "nothing of yours"),
    Key("mcp.NAME.read", Folders(), None, "Folders it may read.", "only the workspace"),
    Key("mcp.NAME.write", Folders(), None, "Folders it may write.", "none"),
    Key(
        "mcp.NAME.workspace",
        OneOf(("read", "write")),
        "read",
        "What it may do in the workspace.",
    ),
    Key(
        "mcp.NAME.url",
        Address(),
        None,
        "An MCP server by its address (streamable HTTP), instead of command.",
        unset="give command instead",
    ),
    Key("mcp.NAME.headers", Headers(), None, "Sent to it with every request.", "none"),
    Key(
        "mcp.NAME.token_from",
        VariableName(),
        None,
        "The variable of your environment that holds the bearer token to send to it.",
        unset="no token",
    ),
    Key(
        "mcp.NAME.unattended",
        Switch(),
        False,
        "`--approve all-in-sandbox` lets its calls run too, though url is outside of the sandbox.",
    ),
    Key(
        "mcp.NAME.tools",
        Words(what="names"),
        None,
        "Its tools to offer, the most important first.",
        unset="all that fit",
    ),
    Key("mcp.NAME.timeout", Whole(1, 600), CALL_SECONDS, "Seconds that a call may take."),
)
"""The keys of one of the tables [mcp.NAME]."""

MCP_TABLE = "mcp"
OF_COMMAND = ("env", "read", "write", "workspace")
OF_URL = ("headers", "token_from", "unattended")
"""Keys that only a server of that kind may have."""

TABLES = tuple(dict.fromkeys(key.table for key in (*KEYS, PROMPTS) if key.table))
TABLES += (MCP_TABLE,)
