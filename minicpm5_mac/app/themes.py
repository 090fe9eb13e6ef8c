"""The colours: dark and light, each also in colours that a 256-colour terminal has exactly."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="dusk",
    dark=True,
    primary="#82aaff",
    secondary="#7f8ea3",
    accent="#e0b072",
    foreground="#d6d9e0",
    background="#15171c",
    surface="#1b1e25",
    panel="#242832",
    success="#8fbf8f",
    warning="#e0b072",
    error="#e07a7a",
    variables={
        "text-muted": "#8b92a0",
        "text-disabled": "#666d7a",
        "border": "#82aaff",
        "border-blurred": "#343a46",
        "block-cursor-foreground": "#15171c",
        "block-cursor-background": "#82aaff",
        "footer-key-foreground": "#82aaff",
        "input-selection-background": "#82aaff 30%",
        "scrollbar": "#343a46",
        "scrollbar-background": "#15171c",
        "scrollbar-background-hover": "#15171c",
        "scrollbar-background-active": "#15171c",
        "scrollbar-corner-color": "#15171c",
    },
)

LIGHT = Theme(
    name="day",
    dark=False,
    primary="#2c5fb3",
    secondary="#5d6a7e",
    accent="#8f5f10",
    foreground="#24272e",
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e8e5de",
    success="#2f6f3a",
    warning="#8f5f10",
    error="#ae2f2f",
    variables={
        "text-muted": "#666b76",
        "text-disabled": "#8c909a",
        "border": "#2c5fb3",
        "border-blurred": "#d3cfc5",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-background": "#2c5fb3",
        "footer-key-foreground": "#2c5fb3",
        "input-selection-background": "#2c5fb3 25%",
        "scrollbar": "#d3cfc5",
        "scrollbar-background": "#fbfaf7",
        "scrollbar-background-hover": "#fbfaf7",
        "scrollbar-background-active": "#fbfaf7",
        "scrollbar-corner-color": "#fbfaf7",
    },
)

# Every colour below is one of xterm's 256, so that no terminal has to round: Terminal.app had
# no other colours before macOS 26.
DARK_256 = Theme(
    name="dusk-256",
    dark=True,
    primary="#87afff",
    secondary="#8787af",
    accent="#d7af5f",
    foreground="#d0d0d0",
    background="#121212",
    surface="#1c1c1c",
    panel="#262626",
    success="#87af87",
    warning="#d7af5f",
    error="#d75f5f",
    variables={
        "text-muted": "#8a8a8a",
        "text-disabled": "#626262",
        "border": "#87afff",
        "border-blurred": "#3a3a3a",
        "block-cursor-foreground": "#121212",
        "block-cursor-background": "#87afff",
        "footer-key-foreground": "#87afff",
        "input-selection-background": "#005f87",
        "scrollbar": "#3a3a3a",
        "scrollbar-background": "#121212",
        "scrollbar-background-hover": "#121212",
        "scrollbar-background-active": "#121212",
        "scrollbar-corner-color": "#121212",
    },
)

LIGHT_256 = Theme(
    name="day-256",
    dark=False,
    primary="#005faf",
    secondary="#5f5f87",
    accent="#875f00",
    foreground="#262626",
    background="#ffffff",
    surface="#eeeeee",
    panel="#e4e4e4",
    success="#005f00",
    warning="#875f00",
    error="#af0000",
    variables={
        "text-muted": "#626262",
        "text-disabled": "#8a8a8a",
        "border": "#005faf",
        "border-blurred": "#c6c6c6",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-background": "#005faf",
        "footer-key-foreground": "#005faf",
        "input-selection-background": "#afd7ff",
        "scrollbar": "#c6c6c6",
        "scrollbar-background": "#ffffff",
        "scrollbar-background-hover": "#ffffff",
        "scrollbar-background-active": "#ffffff",
        "scrollbar-corner-color": "#ffffff",
    },
)

THEMES: tuple[Theme, ...] = (DARK, LIGHT, DARK_256, LIGHT_256)

CHOICES: tuple[str, ...] = ("auto", "dark", "light", "256", "light-256")
"""What the theme setting may say; each theme's own name is understood too."""

_BY_CHOICE = {"dark": DARK, "light": LIGHT, "256": DARK_256, "light-256": LIGHT_256}


def choose_theme(choice: str, environment: Mapping[str, str]) -> str:
    """The theme's name for a setting, by what the terminal says of itself where it is `auto`.

    COLORTERM says whether it has all colours; COLORFGBG, where a terminal sets it, ends with
    the background's number: 7 and 15 are light.
    """
    if choice in _BY_CHOICE:
        return _BY_CHOICE[choice].name
    if any(theme.name == choice for theme in THEMES):
        return choice
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    light = background in ("7", "15")
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return (LIGHT if light else DARK).name
    return (LIGHT_256 if light else DARK_256).name
