"""What a front end asks of the engine: one reply to a conversation."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from minicpm5_mac.messages import Message

WhenFull = Literal["stop", "shorten"]


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """How tokens are drawn. None means the model's own default (its generation_config).

    temperature: 0 is greedy. top_p, min_p: probabilities. top_k: a count, 0 is off.
    repetition_penalty: 1.0 is off. seed: reproduces a reply on the same machine and versions.
    """

    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None


class ReplyRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply.

    messages: the conversation so far, ending with a user or tool message; with `continue_last`
        ending with the assistant message that is to go on.
    tools: JSON-schema function descriptions, as in OpenAI's `tools`.
    thinking: tokens the model may think in this turn; 0 is off, None is no limit.
    thinking_spent: tokens of thinking that earlier steps of the same turn have used.
    max_tokens: tokens the model may write, thinking included; None is what the context holds.
    keep_reasoning: old turns keep their reasoning in the prompt.
    when_full: what to do when the conversation no longer fits: end with ContextFull, or shorten
        the history (oldest reasoning first, then oldest turns) and go on.
    """

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    sampling: Sampling = Sampling()
    thinking: int | None = None
    thinking_spent: int = 0
    max_tokens: int | None = None
    keep_reasoning: bool = True
    when_full: WhenFull = "stop"
    continue_last: bool = False
