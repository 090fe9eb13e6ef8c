"""Kernels are taken only where they were measured to be right and faster."""

from __future__ import annotations

import json
import logging

import mlx.core as mx
import pytest
from emulated import Emulated

from mlx_kernels import gpu
from mlx_kernels.kernel_choice import KernelChoice, Point, choose
from mlx_kernels.step_inputs import StepShape

SHAPE = StepShape(8, 1, 64, "float32", 16, 0)


def point(rows, context, kernel=1.0, plain=2.0, agrees=True):
    return Point(rows, context, kernel, plain, 0.0, agrees)


MEASURED = KernelChoice(
    (
        point(1, 256, kernel=3.0),
        point(1, 4096),
        point(4, 256),
        point(4, 4096, agrees=False),
        point(8, 256),
        point(8, 4096, kernel=2.0),
    )
)


@pytest.mark.parametrize(
    ("rows", "context", "taken"),
    [
        (1, 10, False),  # slower at the shortest
        (1, 4095, False),
        (1, 4096, True),
        (1, 131_072, True),
        (2, 10, True),  # as 4 rows
        (4, 256, True),
        (4, 5000, False),  # wrong there
        (5, 300, True),  # as 8 rows
        (8, 4096, False),  # no faster
        (9, 256, False),  # never measured
    ],
)
def test_a_step_is_decided_by_the_points_around_it(rows, context, taken):
    assert MEASURED.takes(rows, context) == taken


@pytest.mark.usefixtures("compiler_here")
@pytest.mark.parametrize("bits", [16, 4])
def test_a_measurement_is_made_once_and_kept(tmp_path, bits):
    shape = StepShape(8, 1, 64, "float32", bits, 0 if bits == 16 else 64)
    launch = Emulated()

    def chosen(chip="Some chip", folder=tmp_path):
        return choose(
            shape, chip=chip, cores=4, folder=folder, launch=launch, rows=(1,), contexts=(40,)
        )

    first = chosen()
    # The emulator is right, and slower than MLX: right is not enough.
    assert [p.agrees for p in first.points] == [True]
    assert first.points[0].kernel_seconds > first.points[0].plain_seconds > 0
    assert not first.takes(1, 40)
    ran = len(launch.reports)
    assert ran > 0
    assert chosen() == first
    assert len(launch.reports) == ran
    (file,) = tmp_path.iterdir()
    key = json.loads(file.read_text())["key"]
    assert key["chip"] == "Some chip"
    assert key["mlx"]
    chosen(chip="Another chip")
    assert len(launch.reports) > ran
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.usefixtures("compiler_here")
def test_a_kernel_that_is_wrong_is_off_however_fast(tmp_path, caplog):
    emulated = Emulated()

    def with_outputs_of(name, value):
        def launch(kernel, **call):
            outputs = emulated(kernel, **call)
            return [mx.full_like(o, value) for o in outputs] if kernel.name == name else outputs

        return launch

    def without_the_rows_before(kernel, **call):
        outputs = emulated(kernel, **call)
        if kernel.name == "write_plain" and (opened := call["inputs"][2]):
            outputs[1][..., :opened, :] = 0.0
        return outputs

    def wrong_if(opened):
        def launch(kernel, **call):
            outputs = emulated(kernel, **call)
            wrong = kernel.name == "attend_plain" and (call["inputs"][4] > 0) == opened
            return [mx.zeros_like(o) for o in outputs] if wrong else outputs

        return launch

    attention = "kernel off for 1 rows over 40 keys"
    rows = "the rows that they write differ"
    for launch, message in (
        (with_outputs_of("attend_plain", 0.0), attention),
        (with_outputs_of("attend_plain", mx.nan), attention),
        (with_outputs_of("write_plain", 0.0), rows),
        (with_outputs_of("write_plain", mx.nan), rows),
        (without_the_rows_before, rows),
        (wrong_if(opened=True), attention),
        (wrong_if(opened=False), attention),
    ):
        with caplog.at_level(logging.WARNING):
            choice = choose(
                SHAPE, chip="x", cores=4, folder=None, launch=launch, rows=(1,), contexts=(40,)
            )
        assert not choice.takes(1, 40)
        assert message in caplog.text
        caplog.clear()
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("compiler_here")
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"points": [{"rows": 1}]}'])
def test_a_damaged_file_costs_another_measurement(tmp_path, damage, caplog):
    def chosen():
        return choose(
            SHAPE,
            chip="x",
            cores=4,
            folder=tmp_path,
            launch=Emulated(),
            rows=(1,),
            contexts=(33,),
        )

    chosen()
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    file.write_text(damage)
    assert [p.agrees for p in chosen().points] == [True]
    assert "measuring kernels anew" in caplog.text
    assert json.loads(file.read_text())["key"] == json.loads(whole)["key"]


@pytest.mark.usefixtures("compiler_here")
def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    choice = choose(
        SHAPE,
        chip="x",
        cores=4,
        folder=tmp_path / "file" / "folder",
        launch=Emulated(),
        rows=(1,),
        contexts=(33,),
    )
    assert choice.points[0].agrees
    assert "measurements are not kept" in caplog.text


def test_the_number_of_gpu_cores_is_read_from_the_registry():
    # A line as `ioreg -r -c AGXAccelerator -d 1` prints it.
    assert gpu.cores_in('  {\n    "gpu-core-count" = 10\n    "model" = "Apple M4"\n  }\n') == 10
    assert gpu.cores_in("") is None
