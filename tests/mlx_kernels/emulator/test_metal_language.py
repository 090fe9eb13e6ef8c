"""The parts of Metal's language that kernels use, as the emulator has them."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from mlx_kernels.emulator.faults import CompileFailed

LANES = {"grid": (32, 1, 1), "threadgroup": (32, 1, 1)}


def elementwise(kernel, inputs, dtype, **options):
    """Runs a kernel with a thread an element of its first input."""
    size = inputs[0].size
    return kernel.emulate(
        inputs=inputs,
        grid=(size, 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes=[inputs[0].shape] * len(kernel.output_names),
        output_dtypes=[dtype] * len(kernel.output_names),
        orders=["forward"],
        **options,
    ).outputs


def bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 rounded to the nearest bfloat16, ties to even, as float32."""
    return np.array(mx.array(x.astype(np.float32)).astype(mx.bfloat16).astype(mx.float32))


EVERY_16_BITS = np.arange(1 << 16, dtype=np.uint16)


def test_every_half_converts_to_float_exactly(metal_kernel):
    kernel = metal_kernel("uint i = thread_position_in_grid.x; y[i] = x[i];")
    halves = EVERY_16_BITS.view(np.float16)
    (y,) = elementwise(kernel, [halves], np.float32)
    np.testing.assert_array_equal(y, halves.astype(np.float32))


def test_float_to_half_and_bfloat_rounds_to_nearest_even(metal_kernel):
    kernel = metal_kernel(
        "uint i = thread_position_in_grid.x; h[i] = float(half(x[i])); b[i] = float(bfloat(x[i]));",
        outputs=("h", "b"),
    )
    random = np.random.default_rng(0).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    halves = EVERY_16_BITS.view(np.float16)
    finite = halves[np.isfinite(halves)].astype(np.float32)
    # Between two halves there are ties, and those just beside them.
    middle = (finite + np.nextafter(finite, np.float32(np.inf), dtype=np.float32)) / 2
    ties = finite.astype(np.float64) * (1 + 2.0**-11)
    x = np.concatenate([random.view(np.float32), middle, ties.astype(np.float32)])
    x = x[~np.isnan(x)]
    h, b = elementwise(kernel, [x], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(h, x.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(b, bfloat16(x))


@pytest.mark.parametrize("name", ["half", "bfloat"])
def test_arithmetic_of_16_bit_floats_rounds_after_every_operation(metal_kernel, name):
    kernel = metal_kernel(
        f"""uint i = thread_position_in_grid.x;
{name} a = {name}(x[i]), b = {name}(w[i]);
sum[i] = a + b;
product[i] = a * b;
quotient[i] = a / b;
{name} c = a * b + a;
chain[i] = c;
c -= b;
c *= 3;
update[i] = c;
""",
        inputs=("x", "w"),
        outputs=("sum", "product", "quotient", "chain", "update"),
    )
    rng = np.random.default_rng(1)
    r = (lambda v: v.astype(np.float16).astype(np.float32)) if name == "half" else bfloat16
    x, w = (r(rng.normal(size=4096).astype(np.float32)) for _ in range(2))
    got = elementwise(kernel, [x, w], np.float32)
    chain = r(r(x * w) + x)
    expected = [r(x + w), r(x * w), r(x / w), chain, r(r(chain - w) * 3)]
    for have, want in zip(got, expected, strict=True):
        np.testing.assert_array_equal(have, want)


def test_the_types_of_mixed_expressions(metal_kernel):
    metal_kernel(
        """half h = 1.5h;
bfloat b = bfloat(1.5f);
float f = x[0];
int i = 2;
static_assert(is_same_v<decltype(h + h), half>, "");
static_assert(is_same_v<decltype(h * i), half>, "");
static_assert(is_same_v<decltype(h + f), float>, "");
static_assert(is_same_v<decltype(b + b), bfloat>, "");
static_assert(is_same_v<decltype(b * i), bfloat>, "");
static_assert(is_same_v<decltype(b + f), float>, "");
static_assert(is_same_v<decltype(f * 0.5), float>, "a literal without a suffix is float");
static_assert(is_same_v<decltype(1e-3), float>, "");
static_assert(sizeof(float3) == 16 && sizeof(packed_float3) == 12 && sizeof(half4) == 8, "");
half from_float = f;
float from_bfloat = b;
y[0] = h + from_float + from_bfloat;
"""
    ).emulate(
        inputs=[np.ones(8, dtype=np.float32)],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        output_shapes=[(1,)],
        output_dtypes=[np.float32],
    )


def test_vectors_swizzles_and_packed_types(metal_kernel):
    kernel = metal_kernel(
        """float4 v = *(const device float4*)x;
float2 low = v.xy, high = v.zw;
v.xy = high;
v.zw = low.yx;
float4 sum = v * 2.0f + float4(1.0f, low, 0.5f);
sum.w += 1;
*(device float4*)y = sum;
half4 h(v);
uint2 bits = as_type<uint2>(h);
half2 back = as_type<half2>(bits.x);
y[4] = float(back.x) + float(back.y);
packed_float3 p = float3(v.x, v.y, v.z);
y[5] = p[0] + p[1] + dot(v, v);
y[6] = any(v > 3.0f) ? max(v, sum).x : -1.0f;
uchar4 c = as_type<uchar4>(0x04030201u);
y[7] = float(c.x) + float(c.w) * 10;
ushort4 s(c);
int2 shifted = int2(s.xy) << 3;
y[8] = shifted.y;
bfloat4 b(v);
y[9] = float(b[3]);
"""
    )
    y = kernel.emulate(
        inputs=[np.array([1, 2, 3, 4, 5, 6, 7, 8], dtype=np.float32)],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        output_shapes=[(10,)],
        output_dtypes=[np.float32],
    ).outputs[0]
    # v = (3, 4, 2, 1), sum = 2 v + (1, 1, 2, 0.5) with 1 more in w
    assert y.tolist() == [7, 9, 6, 3.5, 7, 37, 7, 41, 16, 1]


SIMD = {
    "simd_sum(v)": lambda v, lane: np.full(32, v.sum()),
    "simd_max(v)": lambda v, lane: np.full(32, v.max()),
    "simd_min(v)": lambda v, lane: np.full(32, v.min()),
    "simd_product(v == 5 ? 2 : 1)": lambda v, lane: np.full(32, 2 ** np.sum(v == 5)),
    "simd_and(v | 8)": lambda v, lane: np.full(32, np.bitwise_and.reduce(v | 8)),
    "simd_or(v)": lambda v, lane: np.full(32, np.bitwise_or.reduce(v)),
    "simd_xor(v)": lambda v, lane: np.full(32, np.bitwise_xor.reduce(v)),
    "simd_prefix_inclusive_sum(v)": lambda v, lane: np.cumsum(v),
    "simd_prefix_exclusive_sum(v)": lambda v, lane: np.cumsum(v) - v,
    "simd_broadcast(v, 7)": lambda v, lane: np.full(32, v[7]),
    "simd_broadcast_first(v)": lambda v, lane: np.full(32, v[0]),
    "simd_shuffle(v, ushort(31 - lane))": lambda v, lane: v[::-1],
    "simd_shuffle_xor(v, 5)": lambda v, lane: v[lane ^ 5],
    # A source outside the simdgroup leaves the lane its own value.
    "simd_shuffle_down(v, 3)": lambda v, lane: np.where(lane < 29, np.roll(v, -3), v),
    "simd_shuffle_up(v, 3)": lambda v, lane: np.where(lane >= 3, np.roll(v, 3), v),
    "simd_shuffle_rotate_down(v, 3)": lambda v, lane: np.roll(v, -3),
    "simd_shuffle_rotate_up(v, 3)": lambda v, lane: np.roll(v, 3),
    "simd_shuffle_and_fill_down(v, 100 + v, 3)": lambda v, lane: (
        np.roll(v, -3) + np.where(lane < 29, 0, 100)
    ),
    "simd_shuffle_and_fill_up(v, 100 + v, 3)": lambda v, lane: (
        np.roll(v, 3) + np.where(lane >= 3, 0, 100)
    ),
    "int(ulong(simd_ballot(v > 10)) & 0x7fffffff)": lambda v, lane: np.full(
        32, int(sum(1 << i for i in range(31) if v[i] > 10))
    ),
    "simd_any(v > 30)": lambda v, lane: np.full(32, (v > 30).any()),
    "simd_all(v >= 0)": lambda v, lane: np.full(32, (v >= 0).all()),
    "quad_sum(v)": lambda v, lane: np.repeat(v.reshape(8, 4).sum(1), 4),
    "quad_broadcast(v, 2)": lambda v, lane: np.repeat(v.reshape(8, 4)[:, 2], 4),
}


def test_simd_functions(metal_kernel):
    lines = [f"y[{i} * 32 + lane] = {text};" for i, text in enumerate(SIMD)]
    kernel = metal_kernel(
        "ushort lane = thread_index_in_simdgroup; int v = x[lane];\n" + "\n".join(lines)
    )
    v = np.random.default_rng(3).integers(0, 32, 32).astype(np.int32)
    y = kernel.emulate(
        inputs=[v], output_shapes=[(len(SIMD), 32)], output_dtypes=[np.int32], **LANES
    ).outputs[0]
    for row, (text, expected) in zip(y, SIMD.items(), strict=True):
        np.testing.assert_array_equal(row, expected(v, np.arange(32)), err_msg=text)


def test_simd_functions_of_half_bfloat_and_vectors(metal_kernel):
    kernel = metal_kernel(
        """ushort lane = thread_index_in_simdgroup;
half h = half(x[lane]);
bfloat b = bfloat(x[lane]);
float2 v = simd_sum(float2(x[lane], 1.0f));
uint2 moved = simd_shuffle_xor(uint2(lane, 7), 1);
y[lane] = float(simd_sum(h)) + float(simd_max(b));
z[lane] = v.x + v.y + float(moved.x + moved.y);
""",
        outputs=("y", "z"),
    )
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    y, z = kernel.emulate(
        inputs=[x], output_shapes=[(32,), (32,)], output_dtypes=[np.float32] * 2, **LANES
    ).outputs
    np.testing.assert_allclose(y, 1.0, atol=2e-3)
    np.testing.assert_allclose(z, x.sum() + 32 + (np.arange(32) ^ 1) + 7, atol=1e-4)


def test_a_simd_function_acts_on_the_lanes_that_have_not_ended(metal_kernel):
    kernel = metal_kernel(
        """uint lane = thread_index_in_simdgroup;
y[lane] = -1.0f;
if (lane >= 20) { return; }
y[lane] = simd_sum(x[lane]);
"""
    )
    y = kernel.emulate(
        inputs=[np.ones(32, dtype=np.float32)],
        output_shapes=[(32,)],
        output_dtypes=[np.float32],
        **LANES,
    ).outputs[0]
    assert y.tolist() == [20.0] * 20 + [-1.0] * 12


def test_math_functions_in_their_three_namespaces(metal_kernel):
    kernel = metal_kernel(
        """uint i = thread_position_in_grid.x;
float v = x[i];
y[i] = fast::exp(v) + metal::precise::rsqrt(v) + exp2(v) + metal::log(v) + fma(v, v, 1.0f);
y[i] += clamp(v, 0.5f, 1.0f) + select(1.0f, 2.0f, v > 1.0f) + round(2.5f) + rint(2.5f);
y[i] += float(popcount(7u)) + float(clz(1u)) + abs(-3.0f) + fmod(v, 0.25f);
""",
    )
    x = np.linspace(0.1, 3, 64, dtype=np.float32)
    (y,) = elementwise(kernel, [x], np.float32)
    w = x.astype(np.float64)
    expected = np.exp(w) + w**-0.5 + 2**w + np.log(w) + w * w + 1
    expected += np.clip(w, 0.5, 1) + np.where(w > 1, 2, 1) + 3 + 2
    expected += 3 + 31 + 3 + np.fmod(x, np.float32(0.25))
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_atomics_count_and_do_not_race(metal_kernel):
    kernel = metal_kernel(
        """atomic_fetch_add_explicit(&y[0], 1, memory_order_relaxed);
atomic_fetch_max_explicit(&y[1], int(thread_position_in_grid.x), memory_order_relaxed);
""",
        atomic_outputs=True,
    )
    result = kernel.emulate(
        inputs=[np.zeros(1, dtype=np.float32)],
        grid=(100, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(2,)],
        output_dtypes=[np.int32],
        init_value=0,
    )
    assert result.outputs[0].tolist() == [100, 99]
    assert result.traffic["y"].loaded == result.traffic["y"].stored == 2 * 100 * 4


def test_headers_tables_and_functions_with_threadgroup_pointers(metal_kernel):
    kernel = metal_kernel(
        """threadgroup float shared[32 * 2], total;
uint t = thread_position_in_threadgroup.x;
fill<T, 2>(shared, t, x[t]);
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t == 0) { total = sum_of(shared, 64); }
threadgroup_barrier(mem_flags::mem_threadgroup);
y[t] = total * weights[t % 4];
""",
        header="""constant float weights[4] = {1.0, 2.0, 3.0, 4.0};
template <typename T, int N>
METAL_FUNC void fill(threadgroup float* shared, uint t, T value) {
  for (int i = 0; i < N; i++) { shared[t * N + i] = value; }
}
inline float sum_of(const threadgroup float* shared, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) { s += shared[i]; }
  return s;
}
""",
    )
    result = kernel.emulate(
        inputs=[mx.ones((32,), dtype=mx.bfloat16)],
        template=[("T", mx.bfloat16)],
        output_shapes=[(32,)],
        output_dtypes=[mx.float32],
        **LANES,
    )
    assert result.outputs[0].tolist() == [64.0 * (1 + t % 4) for t in range(32)]
    assert result.report.threadgroup_bytes == 65 * 4


UNSUPPORTED = {
    "quad_prefix_inclusive_sum": "y[0] = quad_prefix_inclusive_sum(x[0]);",
    "atomic_thread_fence": "atomic_thread_fence(mem_flags::mem_device, memory_order_relaxed);",
    "texture2d": "texture2d<float> t; y[0] = 0;",
    "smoothstep": "y[0] = smoothstep(0.0f, 1.0f, x[0]);",
    "simdgroup_matrix": "simdgroup_matrix<float, 4, 4> m; y[0] = x[0];",
    "SIMD reductions": "y[0] = simd_sum(ulong(1));",
    # No part of Metal at all.
    "printf": 'printf("%f", x[0]);',
    "malloc": "y[0] = *(float*)malloc(4);",
    "std": "y[0] = std::sqrt(x[0]);",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_covered_fails_by_name_where_it_is_used(metal_kernel, name):
    kernel = metal_kernel("float unused = x[0];\n" + UNSUPPORTED[name] + "\n")
    with pytest.raises(CompileFailed, match=name):
        kernel.emulate(
            inputs=[np.ones(8, dtype=np.float32)],
            output_shapes=[(1,)],
            output_dtypes=[np.float32],
            **LANES,
        )


def test_half_and_bfloat_do_not_mix(metal_kernel):
    kernel = metal_kernel("half h = x[0]; bfloat b = bfloat(x[0]); y[0] = h + b;")
    with pytest.raises(CompileFailed, match=r"body\.metal:1"):
        kernel.emulate(
            inputs=[np.ones(8, dtype=np.float32)],
            output_shapes=[(1,)],
            output_dtypes=[np.float32],
            **LANES,
        )


def test_a_float_does_not_become_bfloat_by_itself(metal_kernel):
    kernel = metal_kernel("bfloat b = x[0]; y[0] = b;")
    with pytest.raises(CompileFailed, match=r"body\.metal:1"):
        kernel.emulate(
            inputs=[np.ones(8, dtype=np.float32)],
            output_shapes=[(1,)],
            output_dtypes=[np.float32],
            **LANES,
        )
