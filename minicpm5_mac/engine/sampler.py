"""From a request's sampling to what decode calls: a sampler, a penalty, banned ids.

The sampling itself is mlx-lm's; here the model's own defaults are filled in.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import mlx.core as mx
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from minicpm5_mac.request import Sampling

Sampler = Callable[[mx.array], mx.array]
Processor = Callable[[mx.array, mx.array], mx.array]

# How far back the repetition penalty looks. transformers looks at everything, mlx-lm at 20
# tokens; llama.cpp's 64 punishes a loop and leaves a long answer its vocabulary.
REPETITION_WINDOW = 64


def with_defaults(sampling: Sampling, generation_config: Mapping[str, Any]) -> Sampling:
    """Sampling with the model's generation_config where the request leaves a value open.

    A model that says `do_sample: false` is greedy by default; one that says nothing samples at
    temperature 1.0 as transformers does.
    """

    def pick(value: Any, key: str, default: Any) -> Any:
        if value is not None:
            return value
        configured = generation_config.get(key)
        return default if configured is None else configured

    greedy = generation_config.get("do_sample") is False
    return Sampling(
        temperature=float(pick(sampling.temperature, "temperature", 0.0 if greedy else 1.0)),
        top_p=float(pick(sampling.top_p, "top_p", 1.0)),
        min_p=float(pick(sampling.min_p, "min_p", 0.0)),
        top_k=int(pick(sampling.top_k, "top_k", 0)),
        repetition_penalty=float(pick(sampling.repetition_penalty, "repetition_penalty", 1.0)),
        seed=sampling.seed,
    )


def build_sampler(sampling: Sampling) -> Sampler:
    """log-probabilities [1, V] -> ids [1]. Seeds MLX's generator, afresh where no seed is given."""
    mx.random.seed(secrets.randbits(63) if sampling.seed is None else sampling.seed)
    return make_sampler(
        temp=sampling.temperature or 0.0,
        top_p=sampling.top_p or 0.0,
        min_p=sampling.min_p or 0.0,
        top_k=sampling.top_k or 0,
    )


def build_processors(sampling: Sampling) -> list[Processor]:
    """Changes to logits [1, V] given the latest tokens [n], before sampling."""
    if not sampling.repetition_penalty or sampling.repetition_penalty == 1.0:
        return []
    return make_logits_processors(
        repetition_penalty=sampling.repetition_penalty,
        repetition_context_size=REPETITION_WINDOW,
    )


def ban(ids: Iterable[int], vocab_size: int, dtype: mx.Dtype) -> mx.array:
    """[V], to be added to logits: minus infinity at `ids`."""
    bias = mx.zeros((vocab_size,), dtype=dtype)
    bias[mx.array(sorted(ids))] = -mx.inf
    return bias
