"""simdgroup_matrix: the layout over the lanes, loads, stores, products and their rounding."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

ONE_SIMDGROUP = {"grid": (32, 1, 1), "threadgroup": (32, 1, 1)}


def test_a_lane_holds_the_two_elements_that_mlx_says_it_holds(metal_kernel):
    kernel = metal_kernel(
        """simdgroup_matrix<float, 8, 8> m;
simdgroup_load(m, x, 8);
y[thread_index_in_simdgroup * 2] = m.thread_elements()[0];
y[thread_index_in_simdgroup * 2 + 1] = m.thread_elements()[1];
"""
    )
    x = np.arange(64, dtype=np.float32)
    held = kernel.emulate(
        inputs=[x], output_shapes=[(32, 2)], output_dtypes=[np.float32], **ONE_SIMDGROUP
    ).outputs[0]
    for lane in range(32):
        # steel/attn/mma.h, get_coord
        quad = lane // 4
        row = (quad & 4) + (lane // 2) % 4
        column = (quad & 2) * 2 + (lane % 2) * 2
        assert held[lane].tolist() == [row * 8 + column, row * 8 + column + 1]


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_products_and_sums_are_those_of_matrices(metal_kernel, dtype):
    kernel = metal_kernel(
        """simdgroup_matrix<T, 8, 8> a, b;
simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, 8>(1.5f), d;
simdgroup_load(a, x, 16, ulong2(8, 0));
simdgroup_load(b, w, 8, ulong2(0, 0), true);
simdgroup_multiply_accumulate(d, a, b, c);
simdgroup_store(d, y, 8);
simdgroup_multiply(d, a, b);
threadgroup float shared[64];
simdgroup_store(d, shared, 8, ulong2(0, 0), true);
simdgroup_barrier(mem_flags::mem_threadgroup);
for (int i = 0; i < 2; i++) {
  int e = thread_index_in_simdgroup * 2 + i;
  z[e] = shared[e];
}
""",
        inputs=("x", "w"),
        outputs=("y", "z"),
    )
    mx.random.seed(1)
    x = mx.random.normal((8, 16)).astype(dtype)
    w = mx.random.normal((8, 8)).astype(dtype)
    y, z = kernel.emulate(
        inputs=[x, w],
        template=[("T", dtype)],
        output_shapes=[(8, 8), (8, 8)],
        output_dtypes=[mx.float32, mx.float32],
        **ONE_SIMDGROUP,
    ).outputs
    exact = np.array(x[:, 8:].astype(mx.float32)) @ np.array(w.astype(mx.float32)).T
    np.testing.assert_allclose(np.array(y), exact + 1.5, atol=1e-5)
    np.testing.assert_allclose(np.array(z), exact.T, atol=1e-5)


def test_a_product_rounds_once_to_the_type_of_its_result(metal_kernel):
    kernel = metal_kernel(
        """simdgroup_half8x8 a, b, d;
simdgroup_load(a, x);
simdgroup_load(b, x);
simdgroup_multiply(d, a, b);
simdgroup_store(d, y);
"""
    )
    x = np.random.default_rng(2).normal(size=(8, 8)).astype(np.float16)
    y = kernel.emulate(
        inputs=[x], output_shapes=[(8, 8)], output_dtypes=[np.float16], **ONE_SIMDGROUP
    ).outputs[0]
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(y, (wide @ wide).astype(np.float16))


def test_a_fresh_matrix_holds_no_zeros(metal_kernel):
    kernel = metal_kernel(
        """simdgroup_float8x8 a, d;
simdgroup_load(a, x);
simdgroup_multiply_accumulate(d, a, a, d);
simdgroup_store(d, y);
"""
    )
    y = kernel.emulate(
        inputs=[np.ones(64, dtype=np.float32)],
        output_shapes=[(8, 8)],
        output_dtypes=[np.float32],
        **ONE_SIMDGROUP,
    ).outputs[0]
    assert np.isnan(y).all()


def test_the_diagonal_matrix(metal_kernel):
    kernel = metal_kernel("simdgroup_store(simdgroup_float8x8(x), y);")
    y = kernel.emulate(
        inputs=[3.0], output_shapes=[(8, 8)], output_dtypes=[np.float32], **ONE_SIMDGROUP
    ).outputs[0]
    np.testing.assert_array_equal(y, 3 * np.eye(8, dtype=np.float32))
