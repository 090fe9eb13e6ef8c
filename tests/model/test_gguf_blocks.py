"""Quantized GGUF blocks keep every value in MLX's affine form."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from minicpm5_mac.model.gguf_import.blocks import GROUP_SIZE, AffineRows, to_affine

BLOCK_BYTES = {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}
KINDS = sorted(BLOCK_BYTES)


def values_of(rows: AffineRows) -> np.ndarray:
    """What MLX makes of the packed rows, in float32."""
    return np.array(
        mx.dequantize(
            mx.array(rows.packed),
            mx.array(rows.scales.astype(np.float32)),
            mx.array(rows.biases.astype(np.float32)),
            group_size=GROUP_SIZE,
            bits=rows.bits,
        )
    )


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_block_with_finite_scales_keeps_its_values_exactly(kind: str, data: st.DataObject):
    raw = data.draw(arrays.arrays(np.uint8, (3, 2 * BLOCK_BYTES[kind])))
    scales = st.floats(-60000, 60000, width=16)
    blocks = raw.reshape(3, 2, -1)
    for row in range(3):
        for block in range(2):
            pair = [data.draw(scales), data.draw(scales)]
            blocks[row, block, :4] = np.array(pair, np.float16).view(np.uint8)
    if kind != "Q4_1":  # bytes 2 and 3 are weights there
        blocks[..., 2:4] = data.draw(arrays.arrays(np.uint8, (3, 2, 2)))

    expected = quants.dequantize(raw, GGMLQuantizationType[kind])

    np.testing.assert_array_equal(values_of(to_affine(raw, kind)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_scales_stay_sixteen_bits_for_weights_of_ordinary_size(kind: str):
    weights = np.random.default_rng(1).standard_normal((4, 128)).astype(np.float32)
    rows = to_affine(quants.quantize(weights, GGMLQuantizationType[kind]), kind)
    assert rows.scales.dtype == rows.biases.dtype == np.float16


def test_a_bias_beyond_float16_is_kept_in_float32():
    block = np.zeros((1, 34), np.uint8)
    block[0, :2] = np.array([1000.0], np.float16).view(np.uint8)
    rows = to_affine(block, "Q8_0")
    assert rows.biases.dtype == np.float32
    assert rows.biases[0, 0] == -128_000


def test_rows_can_be_taken_in_another_order():
    weights = np.random.default_rng(2).standard_normal((6, 64)).astype(np.float32)
    rows = to_affine(quants.quantize(weights, GGMLQuantizationType.Q4_0), "Q4_0")
    order = np.array([5, 0, 3, 1, 2, 4])
    np.testing.assert_array_equal(values_of(rows.take_rows(order)), values_of(rows)[order])
