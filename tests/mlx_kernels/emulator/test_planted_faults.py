"""Each kernel here has one fault; the emulator must refuse it by the fault's name, at its line."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
import numpy as np
import pytest

from mlx_kernels.emulator import faults
from mlx_kernels.emulator.toolchain import compiler


@dataclass(frozen=True)
class Planted:
    name: str
    body: str
    fault: type[faults.KernelFault]
    line: int
    memory: str | None = None
    threads: int = 64


PLANTED = [
    Planted(
        "a missing barrier between simdgroups",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float shared[64];
shared[t] = x[t];
y[t] = shared[63 - t];
""",
        # In forward order thread 0 reads what nobody has written yet.
        faults.UninitialisedRead,
        4,
        "shared",
    ),
    Planted(
        "a missing barrier before memory is written again",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float shared[64];
shared[t] = x[t];
threadgroup_barrier(mem_flags::mem_threadgroup);
float a = shared[(t + 1) % 64];
shared[t] = a;
threadgroup_barrier(mem_flags::mem_threadgroup);
y[t] = shared[t];
""",
        faults.Race,
        6,
        "shared",
    ),
    Planted(
        "lanes of one simdgroup that rely on running together",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float shared[32];
if (t < 32) {
  shared[t] = x[t];
  float s = simd_sum(x[t]);
  y[t] = shared[t ^ 1] + s;
}
""",
        faults.Race,
        6,
        "shared",
    ),
    Planted(
        "a barrier that does not name the memory it should order",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float shared[64];
shared[t] = x[t];
threadgroup_barrier(mem_flags::mem_none);
y[t] = shared[63 - t];
""",
        faults.Race,
        5,
        "shared",
    ),
    Planted(
        "one past the end of an input",
        """uint t = thread_position_in_grid.x;
y[t] = x[t] + x[t + 1];
""",
        faults.OutOfBounds,
        2,
        "x",
    ),
    Planted(
        "one before the start of an input",
        """uint t = thread_position_in_grid.x;
y[t] = x[int(t) - 1];
""",
        faults.OutOfBounds,
        2,
        "x",
    ),
    Planted(
        "one past the end of an output",
        """uint t = thread_position_in_grid.x;
y[t + 1] = x[t];
""",
        faults.OutOfBounds,
        2,
        "y",
    ),
    Planted(
        "a wrong stride",
        """uint t = thread_position_in_grid.x;
device const float* row = x + t * 33;
y[t] = row[0];
""",
        faults.OutOfBounds,
        3,
        "x",
    ),
    Planted(
        "an address of no buffer",
        """uint t = thread_position_in_grid.x;
const device float* p = x + (1ul << 45);
y[t] = p[t];
""",
        faults.OutOfBounds,
        3,
    ),
    Planted(
        "one past the end of a threadgroup array, by pointer",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float first[64];
threadgroup float second[64];
first[t] = x[t];
second[t] = x[t];
threadgroup_barrier(mem_flags::mem_threadgroup);
threadgroup float* p = first;
y[t] = p[t + 1] + second[t];
""",
        faults.OutOfBounds,
        8,
        "first",
    ),
    Planted(
        "an index outside a register array",
        """uint t = thread_position_in_grid.x;
float r[4] = {x[t], 1.0f, 2.0f, 3.0f};
y[t] = r[t];
""",
        faults.ArrayIndex,
        3,
    ),
    Planted(
        "threadgroup memory that is read before it is written",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float sums[2];
if (thread_index_in_simdgroup == 0 && t > 0) { sums[t / 32] = x[t]; }
threadgroup_barrier(mem_flags::mem_threadgroup);
y[t] = sums[0];
""",
        faults.UninitialisedRead,
        5,
        "sums",
    ),
    Planted(
        "an output that is added to and was never set",
        """uint t = thread_position_in_grid.x;
y[t] += x[t];
""",
        faults.UninitialisedRead,
        2,
        "y",
    ),
    Planted(
        "two threads that store one element",
        """uint t = thread_position_in_grid.x;
y[t / 2] = x[t];
""",
        faults.Race,
        2,
        "y",
    ),
    Planted(
        "a thread that reads what another has stored, without a barrier for device memory",
        """uint t = thread_position_in_grid.x;
y[t] = x[t];
threadgroup_barrier(mem_flags::mem_threadgroup);
if (t == 0) { y[t] = y[1]; }
""",
        faults.Race,
        4,
        "y",
    ),
    Planted(
        "a threadgroup that reads what another has stored",
        """uint t = thread_position_in_grid.x;
y[t] = x[t];
threadgroup_barrier(mem_flags::mem_device);
if (threadgroup_position_in_grid.x == 1) { y[t] = y[0]; }
""",
        faults.Race,
        4,
        "y",
        threads=32,
    ),
    Planted(
        "a store into an input",
        """uint t = thread_position_in_grid.x;
((device float*)x)[t] = 1.0f;
y[t] = x[t];
""",
        faults.WriteToInput,
        2,
        "x",
    ),
    Planted(
        "a barrier that half of the threads reach",
        """uint t = thread_position_in_threadgroup.x;
if (t < 32) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
y[t] = x[t];
""",
        faults.DivergentBarrier,
        3,
    ),
    Planted(
        "two barriers, one for each half of the threads",
        """uint t = thread_position_in_threadgroup.x;
if (t < 32) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
} else {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
y[t] = x[t];
""",
        faults.DivergentBarrier,
        3,
    ),
    Planted(
        "a barrier inside a simdgroup's branch",
        """uint t = thread_position_in_threadgroup.x;
if (t % 2 == 0) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
y[t] = simd_sum(x[t]);
""",
        faults.DivergentSimdgroup,
        5,
    ),
    Planted(
        "a SIMD function that half of the lanes reach",
        """uint t = thread_position_in_threadgroup.x;
float s = 0.0f;
if (t % 2 == 0) {
  s = simd_sum(x[t]);
}
y[t] = s + simd_max(x[t]);
""",
        faults.DivergentSimdgroup,
        6,
    ),
    Planted(
        "a shuffle from a lane that has ended",
        """uint t = thread_position_in_threadgroup.x;
y[t] = x[t];
if (thread_index_in_simdgroup == 0) { return; }
y[t] = simd_shuffle(x[t], 0);
""",
        faults.InactiveLane,
        4,
    ),
    Planted(
        "a vector load that is not aligned",
        """uint t = thread_position_in_grid.x;
if (t < 8) { float4 v = *(const device float4*)(x + t); y[t] = v.x + v.y + v.z + v.w; }
""",
        faults.Misaligned,
        2,
        "x",
    ),
    Planted(
        "more threadgroup memory than there is",
        """uint t = thread_position_in_threadgroup.x;
threadgroup float half_of_it[4096];
threadgroup float too_much[4097];
half_of_it[t] = x[t];
too_much[t] = x[t];
y[t] = half_of_it[t] + too_much[t];
""",
        faults.ThreadgroupMemoryExceeded,
        3,
    ),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_refused_by_its_name_and_line(metal_kernel, planted):
    if planted.fault is faults.Misaligned and compiler().is_clang:
        pytest.skip("clang++ takes a vector load apart before it can be seen: install g++")
    kernel = metal_kernel(planted.body)
    x = np.arange(64, dtype=np.float32)
    with pytest.raises(planted.fault) as caught:
        kernel.emulate(
            inputs=[x],
            grid=(64, 1, 1),
            threadgroup=(planted.threads, 1, 1),
            output_shapes=[(64,)],
            output_dtypes=[np.float32],
        )
    assert type(caught.value) is planted.fault
    place = caught.value.place
    if planted.fault is not faults.ThreadgroupMemoryExceeded:
        assert place.file is not None
        assert place.file.endswith("body.metal")
        assert place.line == planted.line
    if planted.memory:
        assert place.memory == planted.memory
        assert planted.memory in str(caught.value)


def test_a_fault_names_both_threads_of_a_race(metal_kernel):
    kernel = metal_kernel("y[0] = x[thread_position_in_grid.x];")
    with pytest.raises(faults.Race, match=r"thread 1 of threadgroup .* races with thread 0"):
        kernel.emulate(
            inputs=[mx.ones((2,))],
            grid=(2, 1, 1),
            threadgroup=(2, 1, 1),
            output_shapes=[(1,)],
            output_dtypes=[mx.float32],
            orders=["forward"],
        )


def test_results_that_depend_on_the_order_of_lanes_are_refused(metal_kernel):
    # Atomics do not race, but which lane comes first is nobody's promise.
    kernel = metal_kernel(
        "atomic_exchange_explicit(&y[0], int(thread_position_in_grid.x), memory_order_relaxed);",
        atomic_outputs=True,
    )
    with pytest.raises(faults.OrderDependence, match="output y depend on the order"):
        kernel.emulate(
            inputs=[mx.ones((2,))],
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
            output_shapes=[(1,)],
            output_dtypes=[mx.int32],
            init_value=0,
        )


def test_a_run_after_a_fault_starts_afresh(metal_kernel):
    broken = metal_kernel("y[thread_position_in_grid.x + 1] = x[0];")
    call = {
        "inputs": [mx.ones((32,))],
        "grid": (32, 1, 1),
        "threadgroup": (32, 1, 1),
        "output_shapes": [(32,)],
        "output_dtypes": [mx.float32],
    }
    with pytest.raises(faults.OutOfBounds):
        broken.emulate(**call)
    sound = metal_kernel("y[thread_position_in_grid.x] = simd_sum(x[thread_position_in_grid.x]);")
    assert sound.emulate(**call).outputs[0].tolist() == [32.0] * 32


def test_uninitialised_registers_are_not_zero(metal_kernel):
    kernel = metal_kernel(
        """float sum;
for (int i = 0; i < 4; i++) sum += x[i];
y[thread_position_in_grid.x] = sum;
"""
    )
    result = kernel.emulate(
        inputs=[mx.ones((8,))],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
        output_shapes=[(1,)],
        output_dtypes=[mx.float32],
    )
    assert result.outputs[0].item() != 4.0
