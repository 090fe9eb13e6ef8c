"""The strict check: Apple's own kernels pass, and what Apple's compiler would refuse does not."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from mlx_kernels.emulator import apple
from mlx_kernels.emulator.apple_quantized import QUANTIZED_HEADERS
from mlx_kernels.emulator.signature import PRELUDE, KernelText
from mlx_kernels.emulator.strict_check import (
    StrictCheckFailed,
    strict_check,
    strict_check_header,
    strict_check_text,
)
from mlx_kernels.emulator.toolchain import INSTALL_CLANG, OLDEST_STRICT_CLANG, strict_clang

pytestmark = pytest.mark.skipif(
    strict_clang() is None,
    reason=f"the strict check needs clang {OLDEST_STRICT_CLANG} or newer: {INSTALL_CLANG}",
)

ATTENTION = {20: False, 21: False, 22: True, 23: False, 24: False, 25: False, 26: 32}


@pytest.mark.parametrize(
    ("function", "arguments", "headers"),
    [
        ("sdpa_vector", "half, 128", apple.SDPA_HEADERS),
        ("sdpa_vector_2pass_1", "bfloat, 128", apple.SDPA_HEADERS),
        ("sdpa_vector_2pass_1_gqa", "float, 128, 128, 8, 4", apple.SDPA_HEADERS),
        ("sdpa_vector_2pass_2", "half, 128", apple.SDPA_HEADERS),
        ("affine_quantize", "half, 64, 4", QUANTIZED_HEADERS),
        ("affine_dequantize", "bfloat, 32, 8", QUANTIZED_HEADERS),
        ("affine_qmv_fast", "half, 64, 4, false", QUANTIZED_HEADERS),
    ],
)
def test_apples_own_kernels_pass(function, arguments, headers):
    text = PRELUDE + "".join(f'#include "{header}"\n' for header in headers)
    constants = ATTENTION if headers == apple.SDPA_HEADERS else {}
    strict_check_text(KernelText(function, arguments, text), constants)


def test_apples_kernel_with_one_address_space_removed_does_not_pass(tmp_path):
    header = mlx_header("sdpa_vector.h")
    assert "const device T* kp = keys" in header
    broken = PRELUDE + header.replace("const device T* kp = keys", "const T* kp = keys", 1)
    text = KernelText("sdpa_vector_2pass_1", "half, 128", broken)
    with pytest.raises(StrictCheckFailed, match="device"):
        strict_check_text(text, ATTENTION)


def mlx_header(name: str) -> str:
    from mlx_kernels.emulator.locations import mlx_include

    return (mlx_include() / "mlx/backend/metal/kernels" / name).read_text()


SOUND = """constexpr int N = 8;
uint t = thread_position_in_threadgroup.x;
threadgroup T shared[N * 8];
threadgroup T* row = shared + t / N * N;
const device T* from = x + t;
row[t % N] = from[0];
threadgroup_barrier(mem_flags::mem_threadgroup);
float4 v = float4(1.0f, 2.0, float2(0.5h));
v.xy = v.zw * 2;
simdgroup_matrix<T, 8, 8> m;
simdgroup_load(m, shared, 8);
simdgroup_load(m, x, 8);
v.z += scaled<N>(row, table[t % 2]);
y[t] = static_cast<T>(simd_sum(v.x) + v.z + float(m.thread_elements()[0]));
"""
SOUND_HEADER = """constant float table[2] = {1.0, 2.0};
template <int N, typename T>
METAL_FUNC float scaled(const threadgroup T* row, float by) {
  float sum = 0;
  for (int i = 0; i < N; i++) { sum += float(row[i]); }
  return sum * by;
}
"""
INPUTS = [mx.zeros((64,), mx.float16)]


def check(kernel):
    strict_check(kernel, inputs=INPUTS, template=[("T", mx.float16)], output_dtypes=[mx.float16])


def test_a_sound_kernel_passes(metal_kernel):
    check(metal_kernel(SOUND, header=SOUND_HEADER))


# What is put into the kernel's body, what into its header, and what the check says.
REFUSED = {
    "a device pointer without its address space": ("const T* p = x; y[0] = p[0];", "", "body"),
    "a threadgroup pointer passed as device": (
        "threadgroup float s[4]; y[0] = T(first(s));",
        "inline float first(const device float* p) { return p[0]; }",
        "no matching function",
    ),
    "a store into the constant address space": (
        "y[0] = T(0); table[0] = 1;",
        "constant float table[2] = {1, 2};",
        "body",
    ),
    "a store into an input": ("x[0] = T(1);", "", "body"),
    "double": ("double d = 1; y[0] = T(d);", "", "double"),
    "double that only a template has": (
        "y[0] = T(float(wide(x[0])));",
        "template <typename T> auto wide(T v) { return v * decltype(__builtin_log(1.0f))(2); }",
        "double",
    ),
    "recursion": (
        "y[0] = T(factorial(3));",
        "inline int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }",
        "factorial: Metal has no recursion",
    ),
    "recursion through two functions": (
        "y[0] = T(odd(3));",
        "inline int odd(int n);\ninline int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n"
        "inline int odd(int n) { return n == 0 ? 0 : even(n - 1); }",
        "Metal has no recursion",
    ),
    "a call through a pointer to a function": (
        "float (*f)(float) = x[0] > T(0) ? one : two; y[0] = T(f(1.0f));",
        "inline float one(float v) { return v; }\ninline float two(float v) { return v * 2; }",
        "pointers to functions",
    ),
    "a virtual function": ("", "struct Shape { virtual float area() { return 0; } };", "virtual"),
    "a static variable": ("static int calls = 0; calls++; y[0] = T(calls);", "", "static"),
    "new": ("thread int* p = new int(3); y[0] = T(*p);", "", "new"),
    "an exception": ("if (x[0] > T(0)) { throw 1; }", "", "exceptions"),
    "goto": ("again: if (x[0] > T(0)) { goto again; }", "", "goto"),
    "a lambda": ("auto f = [&](float v) { return v; }; y[0] = T(f(1));", "", "lambda"),
    "the C library": ('printf("%d", 1);', "", "printf"),
    "the C++ library": ("y[0] = T(std::sqrt(1.0f));", "", "standard library"),
    "a threadgroup variable outside a kernel": (
        "y[0] = T(f());",
        "inline float f() { threadgroup float s[4]; s[0] = 1; return s[0]; }",
        "threadgroup variables in kernels only",
    ),
    "vectors of different lengths": ("float4 v = float4(1.0f, 2.0f);", "", "components"),
    "vectors of different types": (
        "float4 v = float4(1.0f, 2.0f, half2(0.5h));",
        "",
        "element type",
    ),
    "an unknown function": ("y[0] = T(simd_total(1.0f));", "", "simd_total"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_metal_forbids_is_refused(metal_kernel, name):
    body, header, message = REFUSED[name]
    kernel = metal_kernel(body + "\n" + SOUND, header=SOUND_HEADER.replace("table", "weights"))
    if "table" not in header:
        header += "\nconstant float table[2] = {1.0, 2.0};"
    kernel.headers[0].write_text(header + "\n" + SOUND_HEADER.replace("table", "weights"))
    with pytest.raises(StrictCheckFailed, match=message):
        check(kernel)


def test_a_finding_names_its_file_and_line(metal_kernel):
    kernel = metal_kernel("\n\nconst T* p = x;\n" + SOUND, header=SOUND_HEADER)
    with pytest.raises(StrictCheckFailed, match=r"body\.metal:3:"):
        check(kernel)
    kernel = metal_kernel("\ngoto end;\nend:;\n" + SOUND, header=SOUND_HEADER)
    with pytest.raises(StrictCheckFailed, match=r"body\.metal:2: Metal has no goto"):
        check(kernel)


def test_a_header_is_checked_as_it_stands(tmp_path):
    header = tmp_path / "shared.metal"
    header.write_text(SOUND_HEADER)
    strict_check_header(header)
    header.write_text("inline const float* f(const device float* p) { return p; }\n")
    with pytest.raises(StrictCheckFailed, match=r"shared\.metal:1"):
        strict_check_header(header)


def test_the_emulator_runs_what_the_strict_check_passes(metal_kernel):
    result = metal_kernel(SOUND, header=SOUND_HEADER).emulate(
        inputs=[np.ones(64, dtype=np.float16)],
        template=[("T", np.float16)],
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(64,)],
        output_dtypes=[np.float16],
    )
    # v.x = 1 in every lane, sum 32; v.z = 0.5 plus the row's 8 ones times 1 or 2; the matrix has 1
    expected = [32 + 0.5 + 8 * (1 + t % 2) + 1 for t in range(64)]
    assert result.outputs[0].tolist() == expected
