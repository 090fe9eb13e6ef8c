"""The call of a kernel: what MLX's metal_kernel does with arrays, templates, grids and names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from mlx_kernels.emulator import compile as emulator_compile
from mlx_kernels.emulator import faults
from mlx_kernels.emulator.arrays import host_array
from mlx_kernels.emulator.signature import ATTRIBUTES, kernel_text
from mlx_kernels.kernel import Kernel, MetalUnavailable

ONE = {"grid": (1, 1, 1), "threadgroup": (1, 1, 1)}


def text_of(kernel, inputs, template=(), output_dtypes=(mx.float32,)):
    arrays = [host_array(x, row_contiguous=kernel.ensure_row_contiguous) for x in inputs]
    return kernel_text(kernel, arrays, template, output_dtypes)


def test_the_signature_is_the_one_that_mlx_writes(metal_kernel):
    kernel = metal_kernel(
        "// x_shape w_strides w_ndim thread_position_in_grid thread_index_in_simdgroup\n",
        inputs=("x", "w", "scale"),
        outputs=("y", "z"),
    )
    inputs = [mx.zeros((2, 3)), mx.zeros((4, 4), dtype=mx.bfloat16), mx.array(1.0)]
    made = text_of(
        kernel,
        inputs,
        [("T", mx.float16), ("N", 3), ("FLAG", True)],
        [mx.uint32, mx.bool_],
    )
    signature = made.text[made.text.index("template <") : made.text.index(") {")]
    # As mlx/backend/common/metal_kernel.cpp, write_signature: fewer than 8 elements are constant.
    assert signature == (
        "template <typename T, int N, bool FLAG>\n"
        "[[kernel]] void custom_kernel_under_test(\n"
        "  const constant float* x [[buffer(0)]],\n"
        "  const constant int* x_shape [[buffer(1)]],\n"
        "  const device bfloat16_t* w [[buffer(2)]],\n"
        "  const constant int64_t* w_strides [[buffer(3)]],\n"
        "  const constant int& w_ndim [[buffer(4)]],\n"
        "  const constant float& scale [[buffer(5)]],\n"
        "  device uint32_t* y [[buffer(6)]],\n"
        "  device bool* z [[buffer(7)]],\n"
        "  uint thread_index_in_simdgroup [[thread_index_in_simdgroup]],\n"
        "  uint3 thread_position_in_grid [[thread_position_in_grid]]"
    )
    assert made.template_arguments == "float16_t, 3, true"


@pytest.mark.parametrize(
    "dtype",
    [
        *(mx.bool_, mx.int8, mx.int16, mx.int32, mx.int64),
        *(mx.uint8, mx.uint16, mx.uint32, mx.uint64),
        *(mx.float16, mx.bfloat16, mx.float32),
    ],
    ids=str,
)
def test_every_dtype_goes_in_and_comes_out(metal_kernel, dtype):
    kernel = metal_kernel("uint i = thread_position_in_grid.x; y[i] = x[i];")
    x = mx.array([0, 1, 1, 0, 1, 1, 1, 0, 1]).astype(dtype)
    y = kernel.emulate(
        inputs=[x],
        grid=(9, 1, 1),
        threadgroup=(4, 1, 1),
        output_shapes=[(3, 3)],
        output_dtypes=[dtype],
        orders=["forward"],
    ).outputs[0]
    assert isinstance(y, mx.array)
    assert y.dtype == dtype
    assert mx.array_equal(y, x.reshape(3, 3))


def test_outputs_are_numpy_where_their_dtype_is(metal_kernel):
    kernel = metal_kernel("y[0] = x[0];")
    y = kernel.emulate(
        inputs=[mx.ones((1,))], output_shapes=[(1,)], output_dtypes=[np.float32], **ONE
    ).outputs[0]
    assert isinstance(y, np.ndarray)


def test_shapes_strides_and_ndim_are_those_of_the_array(metal_kernel):
    kernel = metal_kernel(
        """for (int d = 0; d < x_ndim; d++) { y[d] = x_shape[d]; y[3 + d] = int(x_strides[d]); }
y[6] = int(x[x_strides[0] + 2 * x_strides[1] + 3 * x_strides[2]]);
""",
        ensure_row_contiguous=False,
    )
    whole = mx.arange(2 * 8 * 4).reshape(2, 8, 4)
    call = {"output_shapes": [(7,)], "output_dtypes": [np.int32], **ONE}
    # The valid rows of a longer buffer: no copy, the strides of the whole.
    got = kernel.emulate(inputs=[whole[:, :5, :]], **call).outputs[0]
    assert got.tolist() == [2, 5, 4, 32, 4, 1, 32 + 8 + 3]
    swapped = kernel.emulate(inputs=[whole.transpose(0, 2, 1)], **call).outputs[0]
    assert swapped.tolist() == [2, 4, 8, 32, 1, 4, 32 + 2 + 12]


def test_what_lies_between_the_rows_of_a_view_is_not_its_data(metal_kernel):
    kernel = metal_kernel("y[0] = x[0 * x_strides[0] + 2];", ensure_row_contiguous=False)
    whole = mx.zeros((4, 4))
    y = kernel.emulate(
        inputs=[whole[:, :2]], output_shapes=[(1,)], output_dtypes=[np.float32], **ONE
    ).outputs[0]
    assert np.isnan(y[0])


def test_an_array_that_is_not_row_contiguous_is_copied_unless_told_otherwise(metal_kernel):
    kernel = metal_kernel("uint i = thread_position_in_grid.x; y[i] = x[i];")
    x = mx.arange(12, dtype=mx.float32).reshape(3, 4).T
    y = kernel.emulate(
        inputs=[x],
        grid=(12, 1, 1),
        threadgroup=(12, 1, 1),
        output_shapes=[(4, 3)],
        output_dtypes=[mx.float32],
    ).outputs[0]
    assert mx.array_equal(x, y)


def test_the_grid_is_in_threads_and_its_edge_threadgroups_are_smaller(metal_kernel):
    kernel = metal_kernel(
        """uint i = thread_position_in_grid.x + 5 * thread_position_in_grid.y;
y[i] = int(threadgroup_position_in_grid.x * 100 + threads_per_threadgroup.x * 10 +
           thread_position_in_threadgroup.x);
z[i] = int(threads_per_grid.x * 100 + threadgroups_per_grid.x * 10 +
           dispatch_threads_per_threadgroup.x);
""",
        outputs=("y", "z"),
    )
    y, z = kernel.emulate(
        inputs=[1.0],
        grid=(5, 2, 1),
        threadgroup=(4, 1, 1),
        output_shapes=[(2, 5), (2, 5)],
        output_dtypes=[np.int32, np.int32],
    ).outputs
    assert y.tolist() == [[40, 41, 42, 43, 110]] * 2
    assert z.tolist() == [[524] * 5] * 2


def test_every_attribute_of_mlx_can_be_named(metal_kernel):
    names = [f"{a}.x" if kind == "uint3" else a for a, kind in ATTRIBUTES.items()]
    kernel = metal_kernel("y[thread_position_in_grid.x] = int(" + " + ".join(names) + ");")
    y = kernel.emulate(
        inputs=[1.0],
        grid=(64, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(64,)],
        output_dtypes=[np.int32],
    ).outputs[0]
    # In thread 0: 16 quadgroups twice, 2 simdgroups twice, 64 threads four times (grid_size, grid,
    # threadgroup, dispatched threadgroup), 32 lanes twice, 1 threadgroup.
    assert y[0] == 2 * 16 + 2 * 2 + 4 * 64 + 2 * 32 + 1


def test_an_initial_value_is_there_before_the_kernel_runs(metal_kernel):
    kernel = metal_kernel("if (thread_position_in_grid.x == 0) { y[0] += x[0]; }")
    for dtype in (mx.float32, mx.bfloat16):
        y = kernel.emulate(
            inputs=[mx.ones((1,))],
            template=[],
            grid=(2, 1, 1),
            threadgroup=(2, 1, 1),
            output_shapes=[(2,)],
            output_dtypes=[dtype],
            init_value=2.5,
        ).outputs[0]
        assert y.tolist() == [3.5, 2.5]


def test_metals_limits_hold(metal_kernel):
    kernel = metal_kernel("y[thread_position_in_grid.x] = x[0];")
    call = {"inputs": [mx.ones((8,))], "output_dtypes": [mx.float32]}
    with pytest.raises(faults.TooManyThreads, match="1024"):
        kernel.emulate(grid=(2048, 1, 1), threadgroup=(1025, 1, 1), output_shapes=[(2048,)], **call)
    # MLX clips a threadgroup to its grid before Metal sees it.
    kernel.emulate(grid=(8, 1, 1), threadgroup=(4096, 1, 1), output_shapes=[(8,)], **call)
    many = metal_kernel(
        "y[0] = " + " + ".join(f"i{n}[0] * i{n}_ndim" for n in range(16)) + ";",
        inputs=tuple(f"i{n}" for n in range(16)),
    )
    with pytest.raises(faults.TooManyBuffers, match="33 buffer arguments"):
        many.emulate(
            inputs=[mx.ones((8,))] * 16,
            output_shapes=[(1,)],
            output_dtypes=[mx.float32],
            **ONE,
        )


def test_a_call_that_mlx_refuses_is_refused(metal_kernel):
    kernel = metal_kernel("y[0] = x;")
    call = {"output_shapes": [(1,)], "output_dtypes": [mx.float32]}
    with pytest.raises(
        faults.LaunchRefused, match="Expected `inputs` to have size 1 but got size 2"
    ):
        kernel.emulate(inputs=[1.0, 2.0], **call, **ONE)
    with pytest.raises(faults.LaunchRefused, match="three positive numbers"):
        kernel.emulate(inputs=[1.0], **call, grid=(1, 1), threadgroup=(1, 1, 1))
    with pytest.raises(faults.LaunchRefused, match="no float64"):
        kernel.emulate(inputs=[np.ones(4)], **call, **ONE)


def test_a_compile_error_points_at_the_line_of_its_file(metal_kernel):
    kernel = metal_kernel("float a = x[0];\nfloat b = a +;\ny[0] = b;\n")
    with pytest.raises(faults.CompileFailed, match=r"body\.metal:2:\d+: error"):
        kernel.emulate(
            inputs=[mx.ones((8,))], output_shapes=[(1,)], output_dtypes=[mx.float32], **ONE
        )
    kernel = metal_kernel(
        "y[0] = helper(x[0]);", header="\n\ninline float helper(float v) { return w; }\n"
    )
    with pytest.raises(faults.CompileFailed, match=r"header\.metal:3:\d+: error"):
        kernel.emulate(
            inputs=[mx.ones((8,))], output_shapes=[(1,)], output_dtypes=[mx.float32], **ONE
        )


EMULATE_ONCE = """
import sys
from pathlib import Path
import numpy as np
from mlx_kernels.kernel import Kernel
Kernel("once", ("x",), ("y",), Path(sys.argv[1])).emulate(
    inputs=[np.ones(8, dtype=np.float32)],
    grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)], output_dtypes=[np.float32],
)
"""


def test_a_kernel_is_compiled_once_for_its_content(tmp_path):
    source = tmp_path / "once.metal"
    environment = {**os.environ, "MLX_KERNELS_CACHE": str(tmp_path / "cache")}

    def libraries_after_a_run() -> dict[str, int]:
        command = [sys.executable, "-c", EMULATE_ONCE, str(source)]
        subprocess.run(command, env=environment, check=True)
        made = (tmp_path / "cache").glob("custom_kernel_*.so")
        return {path.name: path.stat().st_mtime_ns for path in made}

    source.write_text("y[0] = x[0] * 3;")
    first = libraries_after_a_run()
    assert len(first) == 1
    assert libraries_after_a_run() == first
    source.write_text("y[0] = x[0] * 4;")
    assert len(libraries_after_a_run()) == 2


def test_without_metal_the_gpu_kernel_says_what_to_do(metal_kernel):
    if mx.metal.is_available():
        pytest.skip("this machine has Metal")
    with pytest.raises(MetalUnavailable, match=r"Kernel\.emulate"):
        metal_kernel("y[0] = x[0];").metal()


def test_without_a_compiler_the_emulator_says_how_to_install_one(tmp_path):
    program = f"""
import os
os.environ["PATH"] = {str(tmp_path)!r}
from mlx_kernels.emulator.toolchain import compiler
compiler()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "CompilerMissing" in done.stderr
    assert "apt install g++" in done.stderr


def test_the_emulators_files_are_part_of_the_package():
    package = Path(emulator_compile.__file__).parent
    assert (package / "src/emulator.h").exists()
    assert (package / "include/metal_stdlib").exists()
    assert (package / "strict_include/metal_stdlib").exists()


def test_a_kernel_is_a_value():
    a, b = (Kernel("k", ("x",), ("y",), Path("k.metal")) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
