"""Peak memory of a prefill: this package's caches and mlx-lm's, measured one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_lm.models import cache as mlx_lm_cache
from mlx_lm.models import llama

from mlx_kernels.llama import install

# Tokens of a prefill step, mlx-lm's default (mlx_lm/generate.py, prefill_step_size).
CHUNK = 2048
GROUP_SIZE = 64


@dataclass(frozen=True)
class PeakMemory:
    """One prefill. cache_dtype: of plain rows, or of scales and biases. cache_bytes: of the cache
    after it. peak_bytes: the most that was allocated during it, without the weights."""

    name: str
    kv_bits: int
    cache_dtype: str
    cache_bytes: int
    peak_bytes: int


def peak_memories(
    *,
    prompt: int,
    computed: int,
    layers: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    hidden: int,
) -> Iterator[PeakMemory]:
    """Prefills of `prompt` tokens through a Llama model of this shape with random weights:
    this package's cache plain and with 4 bits, mlx-lm's plain and with 4 bits. Plain rows have the
    weights' dtype: float32 without Metal, float16 with it. computed: only the last so many tokens
    go through the model, over random rows in the place of the others; the last chunk needs most."""

    def model() -> llama.Model:
        mx.random.seed(1)
        args = llama.ModelArgs(
            model_type="llama",
            hidden_size=hidden,
            num_hidden_layers=layers,
            intermediate_size=hidden,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            rms_norm_eps=1e-5,
            vocab_size=256,
        )
        made = llama.Model(args)
        made.set_dtype(mx.float16 if mx.metal.is_available() else mx.float32)
        mx.eval(made.parameters())
        return made

    def ours(kv_bits: int) -> Callable[[llama.Model], list[Any]]:
        def cache(of: llama.Model) -> list[Any]:
            install(of, kv_bits=kv_bits)
            return of.make_cache()

        return cache

    def theirs(of: llama.Model) -> list[Any]:
        return of.make_cache()

    def theirs_quantized(of: llama.Model) -> list[Any]:
        return [mlx_lm_cache.QuantizedKVCache(GROUP_SIZE, 4) for _ in of.layers]

    ways = (
        ("this package", 16, ours(16)),
        ("this package", 4, ours(4)),
        ("mlx-lm", 16, theirs),
        ("mlx-lm", 4, theirs_quantized),
    )
    for name, bits, make in ways:
        yield _prefill(name, bits, model(), make, prompt, computed)


def _prefill(
    name: str,
    kv_bits: int,
    model: llama.Model,
    make_cache: Callable[[llama.Model], list[Any]],
    prompt: int,
    computed: int,
) -> PeakMemory:
    cache = make_cache(model)
    if computed < prompt:
        args = model.args
        shape = (1, args.num_key_value_heads or 1, prompt - computed, args.head_dim or 1)
        for layer in cache:
            rows = mx.random.normal(shape).astype(model.model.norm.weight.dtype)
            layer.update_and_fetch(rows, rows)
            mx.eval(layer.state)
            del rows
    # mlx-lm's quantized cache cannot tell the size of nothing.
    filled = sum(layer.nbytes for layer in cache) if computed < prompt else 0
    mx.clear_cache()
    weights = mx.get_active_memory() - filled
    mx.reset_peak_memory()
    for start in range(max(0, prompt - computed), prompt, CHUNK):
        tokens = mx.arange(start, min(start + CHUNK, prompt)) % 256
        model(tokens[None], cache=cache)
        mx.eval([layer.state for layer in cache])
        mx.clear_cache()
    keys = cache[0].keys
    rows = keys if isinstance(keys, mx.array) else keys[1]
    return PeakMemory(
        name,
        kv_bits,
        str(rows.dtype).rpartition(".")[2],
        sum(layer.nbytes for layer in cache),
        mx.get_peak_memory() - weights,
    )
