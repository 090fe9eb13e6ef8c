"""Weights and KV cache against memory, with the head size that the configuration gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.model.fit import fit, kv_bytes_per_token, memory_limit

MINICPM5_2B = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "vocab_size": 130560,
}
WEIGHTS = 1_416_035_216

# Bytes a token and at 131,072 tokens, as the kernels' notes have them.
CACHES = {16: 43_008, 8: 22_848, 4: 12_096}


@pytest.mark.parametrize("bits", CACHES)
def test_bytes_of_the_cache(bits: int):
    assert kv_bytes_per_token(MINICPM5_2B, bits) == CACHES[bits]


@pytest.mark.parametrize("bits", CACHES)
def test_float32_numbers_take_twice_as_much_where_they_are_not_packed(bits: int):
    packed = MINICPM5_2B["num_hidden_layers"] * 2 * 2 * 128 * bits // 8 if bits < 16 else 0
    wide = kv_bytes_per_token(MINICPM5_2B, bits, number_bytes=4)
    assert wide - packed == 2 * (CACHES[bits] - packed)


@pytest.mark.parametrize("bits", [8, 4])
def test_a_quantized_cache_is_as_large_as_mlx_makes_it(bits: int):
    vectors = mx.zeros((1, 2, 256, 128), dtype=mx.float16)
    packed = mx.quantize(vectors, group_size=64, bits=bits)
    size = sum(part.nbytes for part in packed) * 2 * MINICPM5_2B["num_hidden_layers"]
    assert kv_bytes_per_token(MINICPM5_2B, bits) * 256 == size


def test_the_head_size_is_not_hidden_size_over_heads():
    config = MINICPM5_2B | {"hidden_size": 1536, "head_dim": 128}
    assert kv_bytes_per_token(config) == kv_bytes_per_token(MINICPM5_2B)
    without = {key: value for key, value in config.items() if key != "head_dim"}
    assert kv_bytes_per_token(without) == 42 * 2 * 2 * 96 * 2


def test_what_fits_says_nothing():
    found = fit(MINICPM5_2B, WEIGHTS, 12_000_000_000, 131_072)
    assert found.fits
    assert (found.message, found.advice) == ("", "")
    assert found.largest_context == 131_072


def test_what_does_not_fit_names_the_context_that_would():
    found = fit(MINICPM5_2B, WEIGHTS, 5_000_000_000, 131_072)
    assert not found.fits
    assert "131,072 tokens does not fit" in found.message
    assert f"{found.largest_context:,} tokens fits" in found.advice
    assert fit(MINICPM5_2B, WEIGHTS, 5_000_000_000, found.largest_context).fits


def test_a_quantized_cache_fits_more():
    wide = fit(MINICPM5_2B, WEIGHTS, 3_000_000_000, 131_072, kv_bits=16).largest_context
    narrow = fit(MINICPM5_2B, WEIGHTS, 3_000_000_000, 131_072, kv_bits=4).largest_context
    assert narrow > 3 * wide


def test_weights_that_do_not_fit_are_said_to_be_the_matter():
    found = fit(MINICPM5_2B, WEIGHTS, 1_000_000_000, 4096)
    assert not found.fits
    assert found.message.startswith("The model does not fit")
    assert "smaller" in found.advice


@given(
    limit=st.integers(0, 10**11),
    context=st.integers(1, 10**6),
    bits=st.sampled_from([16, 8, 4]),
)
def test_the_largest_context_is_the_edge(limit: int, context: int, bits: int):
    found = fit(MINICPM5_2B, WEIGHTS, limit, context, bits)
    assert found.fits == (found.needed_bytes <= limit)
    if found.fits:
        assert found.largest_context == context
    elif found.largest_context:
        edge = found.largest_context
        assert fit(MINICPM5_2B, WEIGHTS, limit, edge, bits).fits
        assert not fit(MINICPM5_2B, WEIGHTS, limit, edge + 1, bits).fits


def test_there_is_some_memory_here():
    assert memory_limit() > 100_000_000


def test_the_real_configuration_gives_the_same_figures():
    path = Path(__file__).parents[3] / "shared/minicpm5/config.json"
    if not path.is_file():
        pytest.skip("MiniCPM5-2B's own config.json is not here")
    config: dict[str, Any] = json.loads(path.read_text())
    assert kv_bytes_per_token(config) == 43_008
