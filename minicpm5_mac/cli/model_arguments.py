"""Command-line arguments that every command with a model shares, and what they mean together.

A flag wins over the configuration file, which wins over the model's own defaults.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minicpm5_mac.agent.settings import SessionSettings
    from minicpm5_mac.configuration.configuration import Configuration
    from minicpm5_mac.engine.options import EngineOptions

_SAMPLING = ("temperature", "top_p", "min_p", "top_k", "repetition_penalty", "seed")


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """--model, --context, --kv-bits."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        "-m",
        metavar="NAME|DIR",
        help="2b (default), 1b, demo, a hub repository, a folder, or an imported model",
    )
    group.add_argument(
        "--context", type=_at_least(256), metavar="N", help="context length in tokens"
    )
    group.add_argument(
        "--kv-bits",
        choices=("16", "8", "4", "auto"),
        help="bits of the KV cache (default 16); auto: as many as the context leaves room for",
    )
    group.add_argument(
        "--no-kernels", action="store_true", help="plain MLX instead of our Metal kernels"
    )


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Thinking, sampling, system prompt and lengths."""
    group = parser.add_argument_group("reply")
    group.add_argument(
        "--thinking",
        type=thinking,
        metavar="on|off|N",
        default=argparse.SUPPRESS,
        help="think without limit, not at all, or for at most N tokens",
    )
    group.add_argument("--system", metavar="TEXT", help="system prompt")
    group.add_argument(
        "--max-tokens", type=_at_least(1), metavar="N", help="most tokens, thinking included"
    )
    group.add_argument("--temperature", type=_between(0, 5), metavar="T", help="0 is greedy")
    group.add_argument("--top-p", type=_between(0, 1), metavar="P")
    group.add_argument("--min-p", type=_between(0, 1), metavar="P")
    group.add_argument("--top-k", type=_at_least(0), metavar="K", help="0 is off")
    group.add_argument("--repetition-penalty", type=_between(0.1, 5), metavar="R", help="1 is off")
    group.add_argument("--seed", type=_at_least(0), metavar="N", help="makes a reply reproducible")


def thinking(text: str) -> int | None:
    """on is no limit (None), off is 0, a number is a budget in tokens."""
    if text in ("on", "off"):
        return None if text == "on" else 0
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    # The words of configuration.kinds.Thinking, without the quotes that a file needs.
    raise argparse.ArgumentTypeError(
        f"{text!r} is not on, off or a whole number of tokens, at least 1"
    )


def session_settings(
    arguments: argparse.Namespace, configuration: Configuration
) -> SessionSettings:
    """Flags over the configuration file."""
    from minicpm5_mac.agent.settings import SessionSettings
    from minicpm5_mac.request import Sampling

    def pick(name: str, default: object) -> object:
        value = getattr(arguments, name, None)
        return default if value is None else value

    sampling = {k: pick(k, getattr(configuration.sampling, k)) for k in _SAMPLING}
    return SessionSettings(
        model=str(pick("model", configuration.model)),
        system_prompt=str(pick("system", configuration.system_prompt)),
        # None is a value here (no limit), so the flag's absence is told by its name.
        thinking=arguments.thinking if "thinking" in arguments else configuration.thinking,
        sampling=Sampling(**sampling),  # type: ignore[arg-type]
        max_tokens=pick("max_tokens", configuration.max_tokens),  # type: ignore[arg-type]
        keep_reasoning=configuration.keep_reasoning,
        when_full=configuration.when_full,
    )


def given_settings(arguments: argparse.Namespace) -> frozenset[str]:
    """Names of SessionSettings fields that came from flags."""
    names = {"model": "model", "system": "system_prompt", "max_tokens": "max_tokens"}
    found = {field for flag, field in names.items() if getattr(arguments, flag, None) is not None}
    if "thinking" in arguments:
        found.add("thinking")
    if any(getattr(arguments, name, None) is not None for name in _SAMPLING):
        found.add("sampling")
    return frozenset(found)


def engine_options(
    model: str, arguments: argparse.Namespace, configuration: Configuration
) -> EngineOptions:
    """What an engine for `model` is started with."""
    from minicpm5_mac.engine.options import EngineOptions

    bits = arguments.kv_bits or configuration.kv_bits
    return EngineOptions(
        model=model,
        context=arguments.context or configuration.context,
        kv_bits="auto" if bits == "auto" else int(bits),  # type: ignore[arg-type]
        kernels=not arguments.no_kernels,
    )


def _at_least(least: int):
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    return read


def _between(least: float, most: float):
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least:g} and {most:g}")
        return value

    return read
