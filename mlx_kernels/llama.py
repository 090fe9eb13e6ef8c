"""Puts this package's attention, caches and joined projections into a Llama model of mlx-lm.

mlx-lm's model file stays as it is: each layer's `self_attn` and `mlp` are replaced by modules that
hold the same weights, and the model's `make_cache` by one that makes this package's caches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import llama as mlx_lm_llama
from mlx_lm.models.activations import swiglu
from mlx_lm.models.base import scaled_dot_product_attention

from mlx_kernels import gpu
from mlx_kernels.affine import BITS, group_size_for
from mlx_kernels.attention import AttentionPath, plain_path
from mlx_kernels.decode_attention import DTYPES, HEAD_DIMS
from mlx_kernels.joined_projections import Projection, can_join, joined
from mlx_kernels.kernel_choice import choose
from mlx_kernels.kernel_path import KernelPath
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.step_inputs import StepShape

log = logging.getLogger(__name__)


class GroupedQueryAttention(nn.Module):
    """The attention of mlx-lm's Llama layer: the same weights, rotations and result.

    path: how attention over a cache is computed.
    """

    def __init__(self, attention: mlx_lm_llama.Attention, path: AttentionPath) -> None:
        super().__init__()
        self.n_heads = attention.n_heads
        self.n_kv_heads = int(attention.n_kv_heads or attention.n_heads)
        self.head_dim = attention.head_dim
        self.scale = attention.scale
        self.rope = attention.rope
        projections = [attention.q_proj, attention.k_proj, attention.v_proj]
        # One projection if they join; a mixed quantization leaves three.
        self.qkv_proj = [joined(projections)] if can_join(projections) else projections
        self.o_proj = attention.o_proj
        self._path = path

    def __call__(self, x: mx.array, mask: Any = None, cache: Any = None) -> mx.array:
        """x [B, L, hidden] to the same shape; mask and cache as mlx-lm's layer takes them."""
        batch, length, _ = x.shape
        causal = isinstance(mask, str) or (mask is None and length == 1)
        if isinstance(cache, KVCache | QuantizedKVCache) and causal:
            out = self._path(
                self._by_head(x),
                cache,
                heads=self.n_heads,
                kv_heads=self.n_kv_heads,
                rope=self.rope,
                scale=self.scale,
            )
        else:
            out = self._as_mlx_lm(self._by_head(x).swapaxes(1, 2), mask, cache)
        return self.o_proj(out.swapaxes(1, 2).reshape(batch, length, -1))

    def _by_head(self, x: mx.array) -> mx.array:
        """Queries, keys and values of x, [B, L, heads + 2 KV heads, D]."""
        parts = [projection(x) for projection in self.qkv_proj]
        qkv = parts[0] if len(parts) == 1 else mx.concatenate(parts, axis=-1)
        return qkv.reshape(*x.shape[:2], -1, self.head_dim)

    def _as_mlx_lm(self, by_head: mx.array, mask: Any, cache: Any) -> mx.array:
        """Without a cache, with another's (a padded batch's), or with a mask of one's own."""
        queries, keys, values = mx.split(
            by_head, [self.n_heads, self.n_heads + self.n_kv_heads], axis=1
        )
        if cache is None:
            queries, keys = self.rope(queries), self.rope(keys)
        else:
            queries = self.rope(queries, offset=cache.offset)
            keys = self.rope(keys, offset=cache.offset)
            keys, values = cache.update_and_fetch(keys, values)
        return scaled_dot_product_attention(
            queries, keys, values, cache=cache, scale=self.scale, mask=mask
        )


class GatedMLP(nn.Module):
    """mlx-lm's Llama MLP with gate and up in one product."""

    def __init__(self, mlp: mlx_lm_llama.MLP) -> None:
        super().__init__()
        self.gate_up_proj: Projection = joined([mlp.gate_proj, mlp.up_proj])
        self.down_proj = mlp.down_proj

    def __call__(self, x: mx.array) -> mx.array:
        """x [B, L, hidden] to the same shape."""
        gate, up = mx.split(self.gate_up_proj(x), 2, axis=-1)
        return self.down_proj(swiglu(gate, up))


@dataclass(frozen=True)
class Installed:
    """What was put into a model.

    layers: how many of `of` have this package's attention. kv_bits: 16 (rows as they are), 8 or 4.
    group_size: of a quantized cache. path: how attention over a cache is computed. notes: what was
    left as mlx-lm has it, or to plain MLX, and why.
    """

    layers: int
    of: int
    kv_bits: int
    group_size: int | None
    path: AttentionPath
    notes: tuple[str, ...]


def install(
    model: nn.Module,
    *,
    kv_bits: int = 16,
    kernels: bool = True,
    measurements: Path | None = None,
    path: AttentionPath | None = None,
) -> Installed:
    """Replace attention, MLP and caches in a model that `mlx_lm.load` returned.

    kv_bits: 16 for a cache in the model's dtype, 8 or 4 for a quantized one. kernels: take this
    package's Metal kernels where there is Metal and a measurement finds them better; False for
    plain MLX. measurements: the folder that keeps those measurements. path: instead of the path
    that is so chosen. Layers and models that are not served stay as they are; each reason is a
    note, and one line of the log. Raises ValueError for other kv_bits.
    """
    if kv_bits != 16 and kv_bits not in BITS:
        raise ValueError(f"kv_bits is 16, 8 or 4, not {kv_bits}")
    layers = list(getattr(model, "layers", []))
    if type(model) is not mlx_lm_llama.Model:
        what = f"{type(model).__module__}.{type(model).__name__}"
        note = f"{what} is not mlx-lm's Llama model"
        return _told(Installed(0, len(layers), 16, None, plain_path, (note,)))
    notes: list[str] = []
    group_size = None
    if kv_bits != 16:
        group_size = group_size_for(layers[0].self_attn.head_dim)
        if group_size is None:
            notes.append("heads do not divide into groups of 32: the cache stays unquantized")
            kv_bits = 16
    sliding = sum(layer.use_sliding for layer in layers)
    if sliding:
        notes.append(f"{sliding} layers have a sliding window: left to mlx-lm")
    served = [not layer.use_sliding and _is_llama(layer) for layer in layers]
    if (replaced := served.count(False) - sliding) > 0:
        notes.append(f"{replaced} layers have another attention than mlx-lm's already")
    if path is None:
        path = _chosen_path(layers[0], kv_bits, group_size, kernels, measurements, notes)
    for layer, ours in zip(layers, served, strict=True):
        if ours:
            layer.self_attn = GroupedQueryAttention(layer.self_attn, path)
        if type(layer.mlp) is mlx_lm_llama.MLP and can_join(
            [layer.mlp.gate_proj, layer.mlp.up_proj]
        ):
            layer.mlp = GatedMLP(layer.mlp)
    # What the separate weights took is given back now, not kept for arrays of the same size.
    mx.clear_cache()
    model.make_cache = _cache_maker(model.make_cache, served, kv_bits, group_size)
    return _told(
        Installed(served.count(True), len(layers), kv_bits, group_size, path, tuple(notes))
    )


def _chosen_path(
    layer: Any,
    kv_bits: int,
    group_size: int | None,
    kernels: bool,
    measurements: Path | None,
    notes: list[str],
) -> AttentionPath:
    """The one place where kernels or plain MLX are chosen."""
    if not kernels or not gpu.has_metal():
        return plain_path
    attention, dtype = layer.self_attn, layer.input_layernorm.weight.dtype
    if attention.head_dim not in HEAD_DIMS or dtype not in DTYPES:
        notes.append(f"no kernel for heads of {attention.head_dim} values of {dtype}: plain MLX")
        return plain_path
    shape = StepShape(
        attention.n_heads,
        attention.n_kv_heads,
        attention.head_dim,
        str(dtype).rpartition(".")[2],
        kv_bits,
        group_size or 0,
    )
    cores = gpu.core_count()
    choice = choose(shape, chip=gpu.chip_name(), cores=cores, folder=measurements)
    return KernelPath(choice, cores)


def _is_llama(layer: Any) -> bool:
    return type(layer.self_attn) is mlx_lm_llama.Attention


def _cache_maker(
    theirs: Callable[[], list[Any]], served: list[bool], kv_bits: int, group_size: int | None
) -> Callable[[], list[Any]]:
    def make_cache() -> list[Any]:
        """An empty cache, one object a layer: this package's where its attention is."""
        return [
            (_new_cache(kv_bits, group_size) if s else c)
            for s, c in zip(served, theirs(), strict=True)
        ]

    return make_cache


def _new_cache(kv_bits: int, group_size: int | None) -> KVCache | QuantizedKVCache:
    return KVCache() if group_size is None else QuantizedKVCache(group_size, kv_bits)


def _told(installed: Installed) -> Installed:
    if installed.notes:
        log.warning(
            "own attention in %d of %d layers: %s",
            installed.layers,
            installed.of,
            "; ".join(installed.notes),
        )
    return installed
