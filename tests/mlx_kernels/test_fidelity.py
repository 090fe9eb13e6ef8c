"""Whole models answer as mlx-lm's do: our tiny one, and the real one of 135 million parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlx_lm.utils import load_tokenizer

from mlx_kernels.__main__ import main
from mlx_kernels.fidelity import PROMPT, fidelity


@pytest.mark.parametrize("name", ["tiny_model", "real_demo_model"])
def test_200_greedy_ids_are_mlx_lms_and_a_quantized_cache_diverges_as_mlx_lms(
    name: str, request: pytest.FixtureRequest
):
    folder: Path = request.getfixturevalue(name)
    found = fidelity(folder, load_tokenizer(folder).encode(PROMPT), 200)
    assert found.equal_ids == found.tokens == 200
    assert found.largest_difference < 1e-4 * found.largest_logit
    assert [one.kv_bits for one in found.divergences] == [8, 4]
    # Both quantize the same numbers, but a rounding error that flips one code of 4 bits moves all
    # that follows: two samples of the same noise.
    for one, within in zip(found.divergences, (0.05, 0.5), strict=True):
        assert one.ours > 0
        assert one.ours == pytest.approx(one.mlx_lm, rel=within)


def test_the_command_reports_it(tiny_model: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["fidelity", str(tiny_model), "--tokens", "3"]) == 0
    shown = capsys.readouterr().out
    assert "3 of 3 greedy ids as mlx-lm's" in shown
    assert "KL divergence" in shown


def test_a_folder_that_is_no_model_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["fidelity", str(tmp_path)]) == 2
    assert f"{tmp_path} is no model's folder" in capsys.readouterr().err
