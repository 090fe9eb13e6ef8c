"""From messages to prompt ids: whole histories, and the new turn alone.

Rendering a history again is not an extension of what the model has seen (a reply comes out
normalised, sampled text re-encodes to other ids), so a conversation keeps its ids and only the
new turn is encoded here, taken from the template's own rendering of it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from minicpm5_mac.messages import Message
from minicpm5_mac.model.chat_template import ChatTemplate, load_chat_template
from minicpm5_mac.model.tokenizer import Tokenizer, load_tokenizer


def thinking_is_open(ids: Sequence[int], think_open: int | None, think_close: int | None) -> bool:
    """Whether a prompt ends inside a think block.

    Compares the LAST opener with the LAST closer: prompts hold both as soon as there is history.
    """
    for token_id in reversed(ids):
        if token_id == think_close:
            return False
        if token_id == think_open:
            return think_open is not None
    return False


class PromptEncoder:
    """Encodes conversations for one model.

    keeps_reasoning: the template writes the reasoning of old turns (MiniCPM5-2B does, 1B
    strips it; a model without thinking has none to strip). opens_turns: ids that begin a turn; a
    reply that writes one has ended.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        probe = secrets.token_hex(6)
        old = template.render(
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b", "reasoning_content": probe},
                {"role": "user", "content": "c"},
            ]
        )
        self.keeps_reasoning = probe in old or not tokenizer.has_thinking
        opener = tokenizer.encode_prompt(
            template.render([{"role": "user", "content": "a"}], add_generation_prompt=True)[
                len(template.render([{"role": "user", "content": "a"}])) :
            ],
            anchored=True,
        )
        is_control = opener and opener[0] in tokenizer.control.values()
        self.opens_turns = frozenset(opener[:1] if is_control else ()) - tokenizer.end_ids

    def fingerprint(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
        """Names everything that old turns' ids depend on besides the turns themselves."""
        system = messages[0].content if messages and messages[0].role == "system" else ""
        digest = hashlib.sha256(msgspec.json.encode([system, list(tools)])).hexdigest()[:16]
        return f"{self.tokenizer.fingerprint}-{self.template.fingerprint}-{digest}"

    def whole(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]] = (),
        *,
        thinking: bool,
        reply: bool = True,
        without_reasoning: Iterable[int] = (),
    ) -> list[int]:
        """Ids of a whole conversation, ending with the reply's opener where `reply`.

        without_reasoning: indices of messages whose reasoning is left out.
        """
        dropped = frozenset(without_reasoning)
        rendered = self.template.render(
            [self._as_template(m, i not in dropped) for i, m in enumerate(messages)],
            tools=[self._guarded(tool) for tool in tools],
            add_generation_prompt=reply,
            enable_thinking=thinking,
        )
        return self.tokenizer.encode_prompt(rendered)

    def turn(
        self,
        messages: Sequence[Message],
        new: int,
        tools: Sequence[dict[str, Any]] = (),
        *,
        thinking: bool,
    ) -> list[int]:
        """Ids that follow a reply's last token: the end of its turn, then `messages[new:]`.

        The template is given an exchange that stands for all that came before, and what it
        writes after that is the new turn, whatever it makes of it.
        """
        placeholder = secrets.token_hex(12)
        before: list[dict[str, Any]] = []
        if messages[0].role == "system":
            before.append(self._as_template(messages[0]))
        before += [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": placeholder},
        ]
        rendered = self.template.render(
            before + [self._as_template(m) for m in messages[new:]],
            tools=[self._guarded(tool) for tool in tools],
            add_generation_prompt=True,
            enable_thinking=thinking,
        )
        rest = rendered[rendered.rindex(placeholder) + len(placeholder) :]
        return self.tokenizer.encode_prompt(rest, anchored=True)

    def _as_template(self, message: Message, reasoning: bool = True) -> dict[str, Any]:
        value: dict[str, Any] = {
            "role": message.role,
            "content": self.tokenizer.guard(message.content),
        }
        if message.role == "assistant":
            if message.reasoning and reasoning:
                value["reasoning_content"] = self.tokenizer.guard(message.reasoning)
            if message.tool_calls:
                value["tool_calls"] = [
                    {
                        "type": "function",
                        "function": {
                            "name": call.name,
                            "arguments": self._guarded(call.arguments),
                        },
                    }
                    for call in message.tool_calls
                ]
        return value

    def _guarded(self, value: Any) -> Any:
        """A JSON value whose strings and keys went through the tokenizer's guard."""
        if isinstance(value, str):
            return self.tokenizer.guard(value)
        if isinstance(value, dict):
            return {self.tokenizer.guard(str(k)): self._guarded(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._guarded(v) for v in value]
        return value


def load_prompt_encoder(folder: Path) -> PromptEncoder:
    """Tokenizer and template of a model folder. Raises Failure where either cannot be used."""
    tokenizer = load_tokenizer(folder)
    return PromptEncoder(tokenizer, load_chat_template(folder, tokenizer.special_texts))
