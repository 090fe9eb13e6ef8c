"""What this package changes in a whole model's output: beside mlx-lm's model of the same weights.

Two questions. With an unquantized cache nothing may change: greedy ids and logits are compared.
With a quantized one the next-token distribution changes, and no more than mlx-lm's own quantized
cache changes it: the Kullback-Leibler divergence from the unquantized cache's, of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import cache as mlx_lm_cache
from mlx_lm.utils import dequantize_model, load_model

from mlx_kernels import gpu
from mlx_kernels.affine import group_size_for
from mlx_kernels.decode_attention import MOST_ROWS
from mlx_kernels.llama import install

# Plain prose; any text that the model was made for would do.
PROMPT = (
    "The lighthouse stood at the end of a long stone pier, and every evening the keeper walked out "
    "to light the lamp. On clear nights ships could see it from twenty miles away; in fog they "
    "listened for the bell instead. When the old keeper retired, the harbour office put a motor "
    "in the tower, and nobody had to climb its hundred and twelve steps any more."
)


@dataclass(frozen=True)
class Divergence:
    """Mean KL divergence (nats a token) of next-token distributions from an unquantized cache's.

    ours, mlx_lm: of this package's and of mlx-lm's cache with so many bits.
    """

    kv_bits: int
    group_size: int
    ours: float
    mlx_lm: float


@dataclass(frozen=True)
class Fidelity:
    """A model with this package put in, beside mlx-lm's.

    prompt, tokens: how many were read and generated greedily. equal_ids: generated ids that are
    the same, from the first on. largest_difference: of any logit, over all steps; largest_logit:
    what it is to be seen against. dtype: of the weights that are not quantized.
    """

    prompt: int
    tokens: int
    equal_ids: int
    largest_difference: float
    largest_logit: float
    dtype: str
    divergences: tuple[Divergence, ...]


def fidelity(folder: Path, prompt: Sequence[int], tokens: int, *, kernels: bool = True) -> Fidelity:
    """Compare over `tokens` greedy tokens after a prompt of ids.

    folder: of a Llama model in mlx-lm's format. Without Metal its weights are made float32, which
    MLX's CPU backend is fastest with. kernels: as `install` takes it.
    """
    theirs = _loaded(folder)
    ids, logits = _greedy(theirs, mlx_lm_cache.make_prompt_cache(theirs), prompt, tokens)
    fed = ids[:-1]
    exact = nn.log_softmax(logits.astype(mx.float32))
    group_size = group_size_for(theirs.layers[0].self_attn.head_dim)
    quantized = {
        bits: _divergence(
            exact,
            _followed(
                theirs,
                [mlx_lm_cache.QuantizedKVCache(group_size, bits) for _ in theirs.layers],
                prompt,
                fed,
            ),
        )
        for bits in (8, 4)
        if group_size is not None
    }
    dtype = str(theirs.layers[0].input_layernorm.weight.dtype).rpartition(".")[2]
    del theirs

    model = _loaded(folder)
    install(model, kernels=kernels)
    ours, our_logits = _greedy(model, mlx_lm_cache.make_prompt_cache(model), prompt, tokens)
    equal = next((i for i, (a, b) in enumerate(zip(ids, ours, strict=True)) if a != b), tokens)
    # From the first other id on, the two answer different questions.
    compared = min(equal + 1, tokens)
    difference = mx.abs(our_logits[:compared] - logits[:compared]).max()
    divergences = []
    for bits, of_theirs in quantized.items():
        model = _loaded(folder)
        install(model, kv_bits=bits, kernels=kernels)
        followed = _followed(model, mlx_lm_cache.make_prompt_cache(model), prompt, fed)
        assert group_size is not None
        divergences.append(Divergence(bits, group_size, _divergence(exact, followed), of_theirs))
    return Fidelity(
        len(prompt),
        tokens,
        equal,
        float(difference),
        float(mx.abs(logits).max()),
        dtype,
        tuple(divergences),
    )


def _loaded(folder: Path) -> Any:
    model, _ = load_model(folder, lazy=True)
    if not gpu.has_metal():
        model = dequantize_model(model)
        model.apply(lambda x: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x)
    mx.eval(model.parameters())
    return model


def _greedy(
    model: Any, cache: list[Any], prompt: Sequence[int], tokens: int
) -> tuple[list[int], mx.array]:
    """The ids that the model goes on with, and the logits [tokens, vocabulary] of each."""
    ids: list[int] = []
    logits: list[mx.array] = []
    step = mx.array([list(prompt)])
    for _ in range(tokens):
        logits.append(model(step, cache=cache)[:, -1])
        step = mx.argmax(logits[-1], axis=-1)[None]
        token = step.item()
        assert isinstance(token, int)
        ids.append(token)
    return ids, mx.concatenate(logits)


def _followed(model: Any, cache: list[Any], prompt: Sequence[int], fed: Sequence[int]) -> mx.array:
    """Log-probabilities [len(fed) + 1, vocabulary] after the prompt and after each id of `fed`,
    which are read in steps of as many rows as the kernels serve."""
    logits = [model(mx.array([list(prompt)]), cache=cache)[0, -1:]]
    for start in range(0, len(fed), MOST_ROWS):
        logits.append(model(mx.array([list(fed[start : start + MOST_ROWS])]), cache=cache)[0])
        mx.eval(logits[-1])
    return nn.log_softmax(mx.concatenate(logits).astype(mx.float32))


def _divergence(exact: mx.array, other: mx.array) -> float:
    return float((mx.exp(exact) * (exact - other)).sum(axis=-1).mean())
