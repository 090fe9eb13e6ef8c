"""The prompt of one reply: recorded ids where they hold, rendering where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minicpm5_mac.engine.context import SHORTEN_TO, Cost, Cut, plan_cut
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import Message
from minicpm5_mac.model.prompt import PromptEncoder, thinking_is_open
from minicpm5_mac.request import ReplyRequest

# A cut is planned with costs that leave out what the template adds; a few rounds settle it.
CUT_ROUNDS = 4


@dataclass(frozen=True)
class Prompt:
    """ids: everything the model is to have read. start: where this turn's own ids begin.

    written: how many ids at the end the model wrote itself (a reply that goes on).
    """

    ids: tuple[int, ...]
    start: int
    fingerprint: str
    written: int = 0

    @property
    def whole(self) -> bool:
        """No earlier ids are continued."""
        return self.start == 0


def wants_thinking(encoder: PromptEncoder, request: ReplyRequest) -> bool:
    """Whether the reply may open with a think block: the tags exist and budget is left."""
    left = None if request.thinking is None else request.thinking - request.thinking_spent
    return encoder.tokenizer.has_thinking and (left is None or left > 0)


def build_prompt(encoder: PromptEncoder, request: ReplyRequest) -> Prompt:
    """The prompt for a request that is assumed to fit. Raises Failure for an empty conversation."""
    messages = request.messages
    if not any(m.role == "user" for m in messages):
        raise Failure("There is nothing to reply to.", "Write a message first.")
    fingerprint = encoder.fingerprint(messages, request.tools)
    if request.continue_last:
        return _continued(encoder, request, fingerprint)
    thinking = wants_thinking(encoder, request)
    last = max((i for i, m in enumerate(messages) if m.role == "assistant"), default=-1)
    new = messages[last + 1 :]
    strips = not (request.keep_reasoning and encoder.keeps_reasoning)
    # Where old reasoning is stripped, a user's message is what makes a turn old.
    if not (strips and any(m.role == "user" for m in new)):
        old = recorded_ids(messages[: last + 1], fingerprint)
        if old:
            tail = _end_of_thinking(encoder, old)
            turn = encoder.turn(messages, last + 1, request.tools, thinking=thinking)
            return Prompt((*old, *tail, *turn), len(old), fingerprint)
    ids = encoder.whole(
        messages,
        request.tools,
        thinking=thinking,
        without_reasoning=() if request.keep_reasoning else _before_last_turn(messages),
    )
    return Prompt(tuple(ids), 0, fingerprint)


def recorded_ids(messages: Sequence[Message], fingerprint: str) -> tuple[int, ...]:
    """All ids fed and generated up to the last reply; empty where any of them is missing."""
    parts: list[tuple[int, ...]] = []
    for message in reversed(messages):
        if message.role != "assistant":
            continue
        if message.ids is None or message.ids.fingerprint != fingerprint:
            return ()
        parts += [message.ids.generated, message.ids.prompt]
        if message.ids.whole:
            return tuple(i for part in reversed(parts) for i in part)
    return ()


def shorten(
    encoder: PromptEncoder, request: ReplyRequest, most: int, holds: int
) -> tuple[Prompt, Cut]:
    """The prompt without old content, at most about 70 % of `most` tokens where that can be.

    most: tokens of a prompt that leaves room for its reply; holds: all that the context has.
    Raises Failure where even the last message alone does not fit.
    """
    messages = request.messages
    thinking = wants_thinking(encoder, request)
    count = encoder.tokenizer.encode_text
    costs = [Cost(len(count(m.content)), len(count(m.reasoning))) for m in messages]
    target = int(most * SHORTEN_TO)
    whole = len(encoder.whole(messages, request.tools, thinking=thinking))
    surplus = whole - target
    for _ in range(CUT_ROUNDS):
        cut = plan_cut(messages, costs, surplus)
        kept = [i for i in range(len(messages)) if i not in set(cut.left_out)]
        ids = encoder.whole(
            [messages[i] for i in kept],
            request.tools,
            thinking=thinking,
            without_reasoning=[kept.index(i) for i in cut.without_reasoning],
        )
        if len(ids) <= target:
            break
        surplus += len(ids) - target
    if len(ids) > most:
        raise Failure(
            f"The last message alone needs {len(ids):,} tokens and room for a reply; the context "
            f"holds {holds:,}.",
            "Send less text at once, or start with a larger --context.",
        )
    return Prompt(tuple(ids), 0, encoder.fingerprint(messages, request.tools)), cut


def _continued(encoder: PromptEncoder, request: ReplyRequest, fingerprint: str) -> Prompt:
    *before, last = request.messages
    if last.role != "assistant":
        raise Failure("There is no reply to go on with.", "Send a message first.")
    ids = recorded_ids(request.messages, fingerprint)
    if ids and last.ids is not None:
        written = len(last.ids.generated)
        start = 0 if last.ids.whole else len(ids) - written - len(last.ids.prompt)
        return Prompt(ids, start, fingerprint, written)
    tokenizer = encoder.tokenizer
    prompt = encoder.whole(before, request.tools, thinking=bool(last.reasoning))
    text = tokenizer.encode_text(last.reasoning)
    if last.reasoning and last.content and tokenizer.think_close is not None:
        text += tokenizer.encode_text("\n")
        text += [tokenizer.think_close, *tokenizer.encode_text("\n\n")]
    text += tokenizer.encode_text(last.content)
    return Prompt((*prompt, *text), 0, fingerprint, len(text))


def _end_of_thinking(encoder: PromptEncoder, ids: Sequence[int]) -> list[int]:
    """Ids that close a block which a cancelled reply left open, as the template would write it."""
    tokenizer = encoder.tokenizer
    close = tokenizer.think_close
    if close is None or not thinking_is_open(ids, tokenizer.think_open, close):
        return []
    return [*tokenizer.encode_text("\n"), close, *tokenizer.encode_text("\n\n")]


def _before_last_turn(messages: Sequence[Message]) -> list[int]:
    last_user = max(i for i, m in enumerate(messages) if m.role == "user")
    return [i for i, m in enumerate(messages[:last_user]) if m.role == "assistant"]
