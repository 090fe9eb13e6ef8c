"""The attention path of this package's Metal kernels, where a measurement has found them better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from mlx_kernels.attention import Cache, plain_path
from mlx_kernels.decode_attention import Launch, decode_attention, metal_launch, parts_for, serves
from mlx_kernels.kernel_choice import KernelChoice
from mlx_kernels.new_rows import serves_rotation, write_new_rows


@dataclass(frozen=True)
class KernelPath:
    """An AttentionPath: kernels for the steps that they serve and are chosen for, else plain MLX.

    choice: for which steps. cores: of the GPU. launch: runs a kernel.
    """

    choice: KernelChoice
    cores: int
    launch: Launch = metal_launch

    def __call__(
        self,
        by_head: mx.array,
        cache: Cache,
        *,
        heads: int,
        kv_heads: int,
        rope: Any,
        scale: float,
    ) -> mx.array:
        """See AttentionPath."""
        batch, length, _, d = by_head.shape
        served = serves((batch, heads, length, d), kv_heads, by_head.dtype)
        if not served or not self.choice.takes(length, cache.offset + length):
            return plain_path(
                by_head, cache, heads=heads, kv_heads=kv_heads, rope=rope, scale=scale
            )
        if serves_rotation(rope, d, by_head.dtype):
            queries = write_new_rows(
                by_head, cache, heads=heads, kv_heads=kv_heads, rope=rope, launch=self.launch
            )
        else:
            rotated = rope(by_head[:, :, : heads + kv_heads].swapaxes(1, 2), offset=cache.offset)
            queries = rotated[:, :heads]
            new_values = by_head[:, :, heads + kv_heads :].swapaxes(1, 2)
            cache.append(mx.stack([rotated[:, heads:], new_values]))
        parts = parts_for(cache.offset, batch * kv_heads, self.cores)
        return decode_attention(
            queries, *cache.rows_and_block(), scale=scale, parts=parts, launch=self.launch
        )
