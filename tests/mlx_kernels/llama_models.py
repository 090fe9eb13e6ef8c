"""Llama models of mlx-lm for tests: with random weights of any shape, or the tiny trained one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import llama
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model


def random_model(*, quantize: int | None = None, seed: int = 3, **changes: Any) -> llama.Model:
    """A model of 2 layers with 4 query and 2 KV heads of 64, or as `changes` say."""
    mx.random.seed(seed)
    shape = {
        "model_type": "llama",
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "intermediate_size": 192,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "rms_norm_eps": 1e-5,
        "vocab_size": 257,
    }
    model = llama.Model(llama.ModelArgs(**(shape | changes)))
    if quantize:
        nn.quantize(model, group_size=32, bits=quantize)
    mx.eval(model.parameters())
    return model


def float32_model(folder: Path) -> llama.Model:
    """A model of a folder with its quantized weights, scales and the rest in float32."""
    model, _ = load_model(folder, lazy=True)
    model.apply(lambda x: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x)
    mx.eval(model.parameters())
    return model


def greedy(model: Any, prompt: Sequence[int], n: int) -> tuple[list[int], mx.array]:
    """n ids that the model goes on with, and the logits [n, vocabulary] that they are chosen by."""
    cache, ids, logits = make_prompt_cache(model), [], []
    tokens = mx.array([list(prompt)])
    for _ in range(n):
        logits.append(model(tokens, cache=cache)[:, -1])
        tokens = mx.argmax(logits[-1], axis=-1)[None]
        ids.append(tokens.item())
    return ids, mx.concatenate(logits)
