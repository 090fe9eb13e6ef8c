"""`python -m mlx_kernels`: what it counts, computes and measures, and what it says it cannot do."""

from __future__ import annotations

import json
import subprocess
import sys

import mlx.core as mx
import pytest
from emulated import Emulated

from mlx_kernels.__main__ import NO_METAL, main
from mlx_kernels.benchmark import copy_bandwidth, step_times
from mlx_kernels.memory_table import ModelShape, kv_bytes_per_token
from mlx_kernels.step_inputs import StepShape


def printed(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("compiler_here")
def test_traffic_of_a_plain_cache_beside_apples(capsys):
    found = printed(capsys, "traffic", "--context", "200")
    assert "before any cache" in found["counted"]
    ways = {step["name"]: step for step in found["steps"]}
    ours = ways["this package"]
    assert ours["ratio"] == 1.0
    assert ours["kv_read"] == 200 * 2 * 2 * 128 * 2
    assert ways["MLX sdpa_vector"]["ratio"] == ways["MLX sdpa_vector_2pass"]["ratio"] == 8.0
    assert ways["MLX sdpa_vector_2pass gqa"]["ratio"] == 2.0
    assert ours["launches"] == ways["MLX sdpa_vector_2pass"]["launches"] == 2
    # Results of every split are written and read: fewer splits, fewer bytes.
    assert 0 < ours["written"] < ways["MLX sdpa_vector_2pass"]["written"]
    assert ours["largest_error"] <= ways["MLX sdpa_vector_2pass"]["largest_error"]


@pytest.mark.usefixtures("compiler_here")
def test_traffic_of_a_quantized_cache_beside_mlx_lms(capsys):
    arguments = ("--context", "130", "--kv-bits", "4", "--rows", "4", "--head-dim", "64")
    found = printed(capsys, "traffic", *arguments)
    ours, theirs = found["steps"]
    assert (ours["name"], theirs["name"]) == ("this package", "mlx-lm quantized")
    assert ours["ratio"] == 1.0
    assert theirs["ratio"] >= 8.0
    assert "over 128 keys" in theirs["note"]
    assert "not counted" in theirs["note"]
    assert ours["largest_error"] < 1e-3
    assert main(["traffic", *arguments]) == 0
    table = capsys.readouterr().out
    assert "before any cache" in table
    assert "mlx-lm quantized" in table


@pytest.mark.usefixtures("compiler_here")
@pytest.mark.parametrize(
    ("bits", "rows", "launches", "theirs"), [(16, 1, 1 + 1 / 16, 4), (4, 3, 1 + 2 / 5, 10)]
)
def test_traffic_tells_what_the_write_into_the_cache_costs(capsys, bits, rows, launches, theirs):
    shape = ("--rows", str(rows), "--kv-bits", str(bits), "--head-dim", "64")
    found = printed(capsys, "traffic", "--context", "64", *shape)
    assert "from one closing" in found["writes_counted"]
    ours, mlx_lm = found["writes"]
    assert (ours["launches"], mlx_lm["launches"]) == (launches, theirs)
    steps = 16 // rows
    assert f"closing, 1 in {steps} steps" in ours["note"]
    vector, kept = 64 * 2, 64 * 2 if bits == 16 else 32 + 4
    # Rows that are in the block already are copied; all of it is written once more at its closing.
    copied = rows * (steps - 1) / 2
    moved = 4 * kept * (copied + rows)
    assert ours["read"] == 20 * vector * rows + moved
    assert ours["written"] == 16 * vector * rows + moved + 4 * kept * rows
    assert mlx_lm["note"] == "derived"
    assert 0 < mlx_lm["written"] <= mlx_lm["read"] <= ours["read"]


@pytest.mark.usefixtures("compiler_here")
def test_a_long_context_is_counted_from_a_sample_and_says_so(capsys):
    shape = ("--heads", "1", "--kv-heads", "1", "--head-dim", "64")
    found = printed(capsys, "traffic", "--context", "4608", *shape)
    for step in found["steps"]:
        assert step["ratio"] == pytest.approx(1.0, abs=0.02)
        assert step["largest_error"] is None
        assert "counted from 16 threadgroups" in step["note"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["traffic", "--kv-bits", "5"], "invalid choice: 5"),
        (["traffic", "--rows", "9"], "invalid choice: 9"),
        (["traffic", "--context", "0"], "0 is less than 1"),
        (["traffic", "--heads", "9"], "9 query heads are no multiple of 2 KV heads"),
        (["memory", "--head-dim", "100"], "100 is no multiple of 64"),
        ([], "required: command"),
    ],
)
def test_what_cannot_be_asked_is_said(arguments, told, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err


def test_more_query_tokens_than_keys_are_refused(capsys):
    assert main(["traffic", "--context", "3", "--rows", "4"]) == 2
    assert "4 query tokens need as many keys" in capsys.readouterr().err


@pytest.mark.skipif(mx.metal.is_available(), reason="a Metal GPU is here")
@pytest.mark.parametrize("arguments", [["bench"], ["bench", "--json"]])
def test_bench_without_metal_says_so_and_exits_3(arguments, capsys):
    assert main(arguments) == NO_METAL == 3
    assert "no Metal GPU here" in capsys.readouterr().err


def test_the_commands_run_as_a_module():
    command = [sys.executable, "-m", "mlx_kernels", "memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "computed" in done.stdout
    assert "131,072 at 4" in done.stdout


@pytest.mark.usefixtures("compiler_here")
@pytest.mark.parametrize("bits", [16, 8])
def test_bench_times_both_ways_of_a_step(bits):
    shape = StepShape(4, 1, 64, "float32", bits, 0 if bits == 16 else 64)
    found = step_times([shape], rows=[2], cores=8, contexts=[40], bandwidth=1e9, launch=Emulated())
    (step,) = found
    assert (step.context, step.rows, step.kv_bits) == (40, 2, bits)
    assert step.kernel_ms > 0
    assert step.other_ms > 0
    vector = 64 * 4 if bits == 16 else 64 + 2 * 4
    expected = 2 * 40 * vector / (step.kernel_ms * 1e-3) / 1e9
    assert step.bandwidth_share == pytest.approx(expected)


def test_a_copys_bandwidth_is_a_number_of_bytes():
    assert copy_bandwidth(1 << 20) > 0


def test_memory_is_what_the_shape_says(capsys):
    found = printed(capsys, "memory")
    assert "computed" in found["computed"]
    assert "not measured" in found["computed"]
    table = {(row["context"], row["kv_bits"]): row for row in found["rows"]}
    assert set(table) == {(n, b) for n in (8192, 32_768, 131_072) for b in (16, 8, 4)}
    # shared/design/kernels.md: 5.64, 2.99 and 1.59 GB at 131,072 tokens.
    for bits, gigabytes in ((16, 5.64), (8, 2.99), (4, 1.59)):
        assert table[131_072, bits]["kv_bytes"] / 1e9 == pytest.approx(gigabytes, abs=0.005)
    row = table[131_072, 16]
    read = 1_416_035_216 + row["kv_bytes"]
    assert row["floor_ms"]["M1"] == pytest.approx(read / 68e9 * 1e3)
    assert row["floor_ms"]["M5 Max 614"] == pytest.approx(read / 614e9 * 1e3)


def test_groups_and_layers_change_the_bytes_of_a_token():
    shape = ModelShape(layers=1, kv_heads=1, head_dim=128, weight_bytes=1, group_size=64)
    assert kv_bytes_per_token(shape, 16) == 2 * 256
    assert kv_bytes_per_token(shape, 8) == 2 * 136
    assert kv_bytes_per_token(shape, 4) == 2 * 72
    finer = ModelShape(3, 2, 128, 1, 32)
    assert kv_bytes_per_token(finer, 4) == 3 * 2 * 2 * (64 + 4 * 4)


@pytest.mark.parametrize("computed", [768, 1024])
def test_peak_memory_of_a_prefill_is_measured_for_all_four_caches(capsys, computed):
    shape = ("--layers", "2", "--head-dim", "64", "--hidden", "64")
    found = printed(capsys, "peak", "--prompt", "1024", "--computed", str(computed), *shape)
    assert (found["prompt"], found["computed"]) == (1024, computed)
    plain, ours, theirs, theirs_quantized = found["prefills"]
    for one in found["prefills"]:
        assert one["cache_dtype"] == "float32"
        assert 0 < one["cache_bytes"] < one["peak_bytes"]
    assert ours["kv_bits"] == theirs_quantized["kv_bits"] == 4
    assert plain["cache_bytes"] == theirs["cache_bytes"] == 2 * 2 * 2 * 1024 * 64 * 4
    assert ours["cache_bytes"] == theirs_quantized["cache_bytes"]
    # No matrix of scores, [heads, rows, keys] in float32, is ever whole.
    scores = 16 * 768 * 1024 * 4
    assert ours["peak_bytes"] < plain["peak_bytes"] < scores
    assert theirs_quantized["peak_bytes"] > scores
