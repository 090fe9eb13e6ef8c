"""Our engine beside mlx-lm's, on the same weights, in turns, in one run.

Machines are noisy, so what counts is the ratio within a round; the medians are reported. Both
sides are timed by the same clock at the same points: from the first token to the last.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import mlx.core as mx
import msgspec
from mlx_lm.generate import stream_generate
from mlx_lm.tokenizer_utils import load as load_mlx_tokenizer

from minicpm5_mac.engine.generation import Generation
from minicpm5_mac.engine.kv_state import KVState
from minicpm5_mac.engine.prefill import Prefill
from minicpm5_mac.engine.prompt import Prompt, build_prompt
from minicpm5_mac.engine.sampler import with_defaults
from minicpm5_mac.events import ReplyEnd
from minicpm5_mac.messages import Message
from minicpm5_mac.model.loading import LoadedModel
from minicpm5_mac.request import ReplyRequest, Sampling

TASK = "Write a long story about a lighthouse keeper. "
FILLER = "The sea was calm that day, and the keeper wrote every ship that passed into a book. "


class Run(msgspec.Struct, frozen=True):
    """One reply. Rates are tokens a second, times seconds, memory bytes."""

    prompt_rate: float
    decode_rate: float
    time_to_first_token: float
    tokens: int
    peak_memory: int


class Round(msgspec.Struct, frozen=True):
    """Both sides, one right after the other."""

    ours: Run
    mlx_lm: Run


class Comparison(msgspec.Struct, frozen=True):
    """All rounds. Ratios are ours over mlx-lm's, medians over rounds; 1 is even, more is faster.

    same_ids: how many greedy ids agree before the first that differs, of `compared`.
    """

    model: str
    device: str
    prompt_tokens: int
    rounds: tuple[Round, ...]
    decode_ratio: float
    prompt_ratio: float
    same_ids: int
    compared: int


def compare(
    loaded: LoadedModel,
    peer: LoadedModel,
    folder: Path,
    *,
    name: str,
    prompt_tokens: int,
    tokens: int,
    rounds: int,
) -> Comparison:
    """Run `rounds` rounds after one that warms up, greedy, each from an empty cache.

    peer: the same folder as mlx-lm has it, without this project's attention.
    """
    prompt = _prompt(loaded, prompt_tokens)
    results: list[Round] = []
    our_ids: list[int] = []
    their_ids: list[int] = []
    tokenizer = load_mlx_tokenizer(folder, eos_token_ids=sorted(_ends(loaded)))
    for number in range(rounds + 1):
        ours, our_ids = _ours(loaded, prompt, tokens)
        theirs, their_ids = _theirs(peer, tokenizer, prompt, tokens)
        if number:
            results.append(Round(ours, theirs))
    compared = min(len(our_ids), len(their_ids))
    same = next((i for i in range(compared) if our_ids[i] != their_ids[i]), compared)
    return Comparison(
        model=name,
        device=loaded.device,
        prompt_tokens=len(prompt.ids),
        rounds=tuple(results),
        decode_ratio=statistics.median(r.ours.decode_rate / r.mlx_lm.decode_rate for r in results),
        prompt_ratio=statistics.median(r.ours.prompt_rate / r.mlx_lm.prompt_rate for r in results),
        same_ids=same,
        compared=compared,
    )


def _ends(loaded: LoadedModel) -> frozenset[int]:
    return loaded.encoder.tokenizer.end_ids | loaded.encoder.opens_turns


def _request(text: str, tokens: int) -> ReplyRequest:
    return ReplyRequest(
        (Message("user", text),), sampling=Sampling(temperature=0.0), thinking=0, max_tokens=tokens
    )


def _prompt(loaded: LoadedModel, wanted: int) -> Prompt:
    size = len(loaded.encoder.tokenizer.encode_text(FILLER))
    text = TASK + FILLER * max(0, wanted // size)
    return build_prompt(loaded.encoder, _request(text, 1))


def _ours(loaded: LoadedModel, prompt: Prompt, tokens: int) -> tuple[Run, list[int]]:
    request = _request("", tokens)
    sampling = with_defaults(request.sampling, loaded.generation_config)
    generation = Generation(
        loaded,
        KVState(loaded.make_cache),
        Prefill(loaded.model),
        request,
        prompt,
        sampling,
        context_limit=len(prompt.ids) + tokens + 1,
    )
    *_, end = generation.run()
    assert isinstance(end, ReplyEnd)
    assert end.ids is not None
    usage = end.usage
    run = Run(
        usage.prompt_rate,
        usage.decode_rate,
        usage.time_to_first_token,
        usage.generated_tokens,
        usage.peak_memory,
    )
    return run, list(end.ids.generated)


def _theirs(loaded: LoadedModel, tokenizer, prompt: Prompt, tokens: int) -> tuple[Run, list[int]]:
    mx.reset_peak_memory()
    ids: list[int] = []
    times: list[float] = []
    started = time.monotonic()
    stream: Iterator = stream_generate(loaded.model, tokenizer, list(prompt.ids), max_tokens=tokens)
    for response in stream:
        times.append(time.monotonic())
        if response.token not in _ends(loaded):
            ids.append(response.token)
    first = times[0] - started
    seconds = times[-1] - times[0]
    rate = (len(times) - 1) / seconds if seconds > 0 else 0.0
    run = Run(len(prompt.ids) / first, rate, first, len(ids), mx.get_peak_memory())
    return run, ids
