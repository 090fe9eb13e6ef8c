"""Reading settings from what is typed; presets; themes."""

from __future__ import annotations

import pytest
from rich.color import Color, ColorSystem

from minicpm5_mac.app.presets import BUILT_IN, presets
from minicpm5_mac.app.sampling_form import FIELDS, read_sampling, read_thinking, typed_values
from minicpm5_mac.app.themes import CHOICES, DARK_256, LIGHT_256, THEMES, choose_theme
from minicpm5_mac.configuration.keys import BY_NAME
from minicpm5_mac.failure import Failure
from minicpm5_mac.request import Sampling

EMPTY = {field.name: "" for field in FIELDS}


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.0, top_p=0.95, min_p=0.05, top_k=40, repetition_penalty=1.1, seed=7),
        Sampling(seed=2**32 - 1),
    ],
)
def test_what_the_fields_show_reads_as_the_same_settings(sampling):
    assert read_sampling(typed_values(sampling)) == sampling


@pytest.mark.parametrize(
    ("name", "typed", "named"),
    [
        ("temperature", "warm", "Temperature"),
        ("temperature", "-1", "Temperature"),
        ("temperature", "nan", "Temperature"),
        ("top_p", "1.5", "Top-p"),
        ("top_k", "2.5", "Top-k"),
        ("seed", "-3", "Seed"),
        ("repetition_penalty", "0", "Repetition"),
    ],
)
def test_a_wrong_value_is_named(name, typed, named):
    with pytest.raises(Failure, match=named):
        read_sampling({**EMPTY, name: typed})


def test_a_decimal_comma_is_understood():
    assert read_sampling({**EMPTY, "temperature": "0,7"}).temperature == 0.7


@pytest.mark.parametrize(
    ("typed", "tokens"), [("on", None), ("OFF", 0), ("", None), ("512", 512), ("0", 0)]
)
def test_thinking_is_a_word_or_a_number(typed, tokens):
    assert read_thinking(typed) == tokens


@pytest.mark.parametrize("typed", ["much", "-1", "1.5", "٣x"])
def test_other_thinking_is_refused(typed):
    with pytest.raises(Failure):
        read_thinking(typed)


def test_own_presets_come_after_the_built_in_ones_and_may_replace_them():
    found = presets({"concise": "Mine.", "Poet": "Rhyme."})
    assert [preset.name for preset in found[-2:]] == ["concise", "Poet"]
    assert sum(preset.name.casefold() == "concise" for preset in found) == 1
    assert len(found) == len(BUILT_IN) + 1


# Themes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "environment", "name"),
    [
        ("dark", {}, "dusk"),
        ("light", {}, "day"),
        ("256", {"COLORTERM": "truecolor"}, "dusk-256"),
        ("auto", {"COLORTERM": "truecolor"}, "dusk"),
        ("auto", {"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, "day"),
        ("auto", {"COLORFGBG": "15;0"}, "dusk-256"),
        ("auto", {"COLORFGBG": "0;default;15"}, "day-256"),
        ("auto", {}, "dusk-256"),
        ("day", {}, "day"),
    ],
)
def test_the_theme_follows_the_setting_and_the_terminal(choice, environment, name):
    assert choose_theme(choice, environment) == name


def test_the_configuration_offers_these_choices():
    assert tuple(BY_NAME["app.theme"].kind.choices) == CHOICES  # type: ignore[attr-defined]


@pytest.mark.parametrize("theme", [DARK_256, LIGHT_256], ids=lambda theme: theme.name)
def test_a_terminal_of_256_colours_has_every_colour_of_its_theme(theme):
    named = {
        name: value for name, value in vars(theme).items() if str(value).startswith("#")
    } | theme.variables
    for name, value in named.items():
        colour = Color.parse(value)
        rounded = colour.downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
        assert colour.triplet is not None
        # Rich takes some greys for the step beside them; every other colour is met exactly.
        away = max(abs(a - b) for a, b in zip(rounded, colour.triplet, strict=True))
        grey = len(set(colour.triplet)) == 1
        assert away <= (10 if grey else 0), name


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_can_be_read_on_every_background(theme):
    for text in (theme.foreground, theme.variables["text-muted"], theme.error, theme.primary):
        for ground in (theme.background, theme.surface, theme.panel):
            assert contrast(text, ground) >= 3.0, (text, ground)
    assert contrast(theme.foreground, theme.background) >= 7.0


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    lights = sorted((luminance(one), luminance(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    triplet = Color.parse(colour).triplet
    assert triplet is not None
    parts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in triplet.normalized
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
