"""A model's own chat template, rendered in a sandbox.

The template is read from the model's folder; it is data from a stranger, so it runs in jinja2's
immutable sandbox. The environment offers what transformers offers to templates: `tojson`
without HTML escapes, `raise_exception`, `strftime_now`, loop controls, `generation` blocks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension
from jinja2.nodes import CallBlock, Node
from jinja2.sandbox import ImmutableSandboxedEnvironment

from minicpm5_mac.failure import Failure


class GenerationBlock(Extension):
    """`{% generation %}…{% endgeneration %}` marks an assistant's text for training: it is text."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 reads this class attribute)

    def parse(self, parser: Any) -> Node:
        """Keep the block's body."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Any) -> str:
        return caller()


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


class ChatTemplate:
    """Renders messages as the model was trained to see them.

    fingerprint: of the template's text, hexadecimal.
    """

    def __init__(self, source: str, special_texts: Mapping[str, str] | None = None) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationBlock, "jinja2.ext.loopcontrols"],
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise Failure(
                f"The model's chat template cannot be read: {error}",
                "Download the model again, or use another conversion of it.",
                exit_code=3,
            ) from error
        self._special_texts = dict(special_texts or {})
        self.fingerprint = hashlib.sha256(source.encode()).hexdigest()[:16]

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = False,
        enable_thinking: bool | None = None,
    ) -> str:
        """The prompt's text. Raises Failure where the template refuses the messages."""
        variables: dict[str, Any] = dict(self._special_texts)
        if enable_thinking is not None:
            variables["enable_thinking"] = enable_thinking
        try:
            return self._template.render(
                messages=list(messages),
                tools=list(tools) or None,
                add_generation_prompt=add_generation_prompt,
                **variables,
            )
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as error:
            raise Failure(
                f"The model's chat template refuses this conversation: {error}",
                "Start a new conversation, or use another model.",
            ) from error


def load_chat_template(folder: Path, special_texts: Mapping[str, str]) -> ChatTemplate:
    """The template of a model folder: chat_template.jinja, or the one in a configuration file."""
    path = folder / "chat_template.jinja"
    source: Any = path.read_text(encoding="utf-8") if path.is_file() else None
    for name in ("chat_template.json", "tokenizer_config.json"):
        if source is None and (folder / name).is_file():
            source = json.loads((folder / name).read_text(encoding="utf-8")).get("chat_template")
    if isinstance(source, list):  # several, by name: [{"name": "default", "template": …}, …]
        named = {item.get("name"): item.get("template") for item in source}
        source = named.get("default") or next(iter(named.values()), None)
    if not isinstance(source, str) or not source.strip():
        raise Failure(
            f"{folder} has no chat template: it is a base model, not one made for chat.",
            "Choose a model whose name says Instruct or Chat, or MiniCPM5 itself.",
            exit_code=3,
        )
    return ChatTemplate(source, special_texts)
