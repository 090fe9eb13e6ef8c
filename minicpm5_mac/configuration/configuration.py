"""The user's defaults, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from minicpm5_mac.configuration.keys import KEYS
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.request import Sampling


@dataclass(frozen=True)
class AppConfiguration:
    """The table `[app]`; see keys.py for what each one means."""

    theme: str
    linear: bool
    bell: bool
    copy_on_select: bool


@dataclass(frozen=True)
class Configuration:
    """Everything in the file, defaults filled in; see keys.py for what each one means.

    thinking, max_tokens and context are tokens; thinking is 0 for off and None for no limit,
    the other two are None where nothing was set.
    """

    model: str
    system_prompt: str
    thinking: int | None
    max_tokens: int | None
    context: int | None
    kv_bits: Literal[16, 8, 4, "auto"]
    when_full: Literal["ask", "shorten"]
    keep_reasoning: bool
    sampling: Sampling
    app: AppConfiguration
    prompts: Mapping[str, str]
    mcp: Mapping[str, McpServer] = field(default_factory=dict)


def configuration_of(
    values: Mapping[str, Any],
    prompts: Mapping[str, str],
    servers: Mapping[str, McpServer] | None = None,
) -> Configuration:
    """A configuration from values by dotted name, as their kinds read them; others by default."""
    tables: dict[str, dict[str, Any]] = {"": {}, "sampling": {}, "app": {}}
    for key in KEYS:
        default = None if key.default is None else key.kind.read(key.default)
        tables[key.table][key.last_name] = values.get(key.name, default)
    return Configuration(
        **tables[""],
        sampling=Sampling(**tables["sampling"]),
        app=AppConfiguration(**tables["app"]),
        prompts=dict(prompts),
        mcp=dict(servers or {}),
    )


DEFAULTS = configuration_of({}, {})
"""What holds without a file."""
