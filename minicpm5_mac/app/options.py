"""What the terminal app is started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.engine.interface import Engine


@dataclass(frozen=True)
class AppOptions:
    """settings: what new conversations begin with; its `model` is loaded at the start.

    make_engine: an engine for a model's name, not yet started; called again for another model
        and after a stop.
    given: names of the settings that were given on the command line: they win over those
        stored with a conversation, and a model that was given is downloaded without asking.
    conversation: the id of the one to go on with; None begins a new one.
    theme: see themes.CHOICES. presets: the user's own system prompts by name.
    bell: ring the terminal's bell at the end of a reply.
    copy_on_select: text selected with the mouse goes to the clipboard at once.
    linear: plain lines for screen readers instead of a full-screen app.
    toolbox: the tools that conversations begin with; None is plain chat.
    notice: said once at the start; empty for nothing.
    """

    settings: SessionSettings
    make_engine: Callable[[str], Engine]
    given: frozenset[str] = frozenset()
    conversation: str | None = None
    theme: str = "auto"
    presets: Mapping[str, str] = field(default_factory=dict)
    bell: bool = False
    copy_on_select: bool = False
    linear: bool = False
    toolbox: Toolbox | None = None
    notice: str = ""
