"""A folder that is no whole MLX llama model is named as what it is, before anything is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac.model.check import check_model, with_rope_parameters
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.safetensors_header import read_header


@pytest.fixture
def folder(small_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_model, tmp_path / "model"))


def edit(name: str, **changes: Any) -> Callable[[Path], None]:
    """Change keys of a JSON file; None removes one."""

    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text()) | changes
        kept = {key: value for key, value in values.items() if value is not None}
        (folder / name).write_text(json.dumps(kept))

    return change


def cut(name: str, share: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return change


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def remove(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names] and None


def only(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.iterdir():
            path.unlink()
        (folder / name).write_bytes(b"x")

    return change


def drop_tensor(folder: Path) -> None:
    weights = dict(mx.load(str(folder / "model.safetensors")).items())
    del weights["model.layers.1.mlp.up_proj.weight"]
    mx.eval(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "model.safetensors.index.json").unlink()


def rename_to_gptq(folder: Path) -> None:
    weights = {
        name.replace("up_proj.weight", "up_proj.qweight"): array
        for name, array in mx.load(str(folder / "model.safetensors")).items()
    }
    mx.eval(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "model.safetensors.index.json").unlink()


WEIGHTS = "model.safetensors"
DAMAGE: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "empty": (lambda f: [p.unlink() for p in f.iterdir()] and None, "not_found", "is empty"),
    "GGUF alone": (only("a.gguf"), "foreign", "GGUF"),
    "PyTorch weights alone": (only("pytorch_model.bin"), "foreign", "pickle"),
    "weights by another name": (only("consolidated.safetensors"), "foreign", "model*.safetensors"),
    "no configuration": (remove("config.json"), "incomplete", "config.json"),
    "no weights": (remove(WEIGHTS), "incomplete", "weights"),
    "no tokenizer": (remove("tokenizer.json"), "incomplete", "tokenizer.json"),
    "a cut tokenizer": (cut("tokenizer.json", 0.5), "corrupt", "tokenizer.json"),
    "an empty configuration": (write("config.json", b""), "incomplete", "config.json"),
    "a cut configuration": (cut("config.json", 0.5), "corrupt", "config.json"),
    "a list for a configuration": (write("config.json", b"[]"), "corrupt", "config.json"),
    "weights cut in the middle": (cut(WEIGHTS, 0.5), "incomplete", "cut off"),
    "weights cut in their header": (cut(WEIGHTS, 0.01), "incomplete", "cut off"),
    "empty weights": (write(WEIGHTS, b""), "incomplete", "cut off"),
    "weights that are a web page": (
        write(WEIGHTS, b"<!DOCTYPE html><html>Sign in</html>"), "corrupt", WEIGHTS),
    "weights that are a large-file pointer": (
        write(WEIGHTS, b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1"),
        "corrupt", WEIGHTS),
    "a tensor is missing": (drop_tensor, "incomplete", "model.layers.1.mlp.up_proj.weight"),
    "an index of files that are not there": (
        edit("model.safetensors.index.json", weight_map={"a": "model-2-of-2.safetensors"}),
        "incomplete", "model-2-of-2.safetensors"),
    "an index of tensors that are not there": (
        edit("model.safetensors.index.json", weight_map={"lm_head.weight": WEIGHTS}),
        "corrupt", "lm_head.weight"),
    "GPTQ weights": (rename_to_gptq, "foreign", "GPTQ"),
    "another architecture": (edit("config.json", model_type="mistral"), "foreign", "mistral"),
    "another head": (
        edit("config.json", architectures=["LlamaForSequenceClassification"]),
        "foreign", "LlamaForSequenceClassification"),
    "code of its own": (edit("config.json", auto_map={"AutoModel": "m.M"}), "foreign", "auto_map"),
    "a module of its own": (edit("config.json", model_file="m.py"), "foreign", "model_file"),
    "a packing of its own": (
        edit("config.json", quantization=None, quantization_config={"quant_method": "awq"}),
        "foreign", "awq"),
    "a mode that is not affine": (
        edit("config.json", quantization={"group_size": 32, "bits": 4, "mode": "mxfp4"}),
        "foreign", "mxfp4"),
    "sizes are missing": (edit("config.json", hidden_size=None), "corrupt", "hidden_size"),
    "sizes of another model": (edit("config.json", intermediate_size=128), "corrupt", "shape"),
    "more layers than weights": (
        edit("config.json", num_hidden_layers=3), "incomplete", "layers.2"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named_with_what_to_do(name: str, folder: Path):
    change, reason, part = DAMAGE[name]
    change(folder)
    with pytest.raises(ModelFailure) as caught:
        check_model(folder)
    assert caught.value.reason == reason
    assert part in caught.value.text
    assert caught.value.advice


def test_a_whole_model_passes_with_its_size(folder: Path):
    checked = check_model(folder)
    arrays = mx.load(str(folder / WEIGHTS))
    assert checked.weight_bytes == sum(array.nbytes for array in arrays.values())
    assert checked.config["head_dim"] == 32


def test_python_files_in_a_folder_are_left_alone(folder: Path):
    (folder / "modeling_llama.py").write_text("raise SystemExit('never run')")
    check_model(folder)


def test_a_broken_download_names_the_command_that_repairs_it(folder: Path, tmp_path: Path):
    place = tmp_path / "hub/models--openbmb--MiniCPM5-2B-MLX/snapshots/abc"
    shutil.copytree(folder, place)
    (place / WEIGHTS).write_bytes(b"")
    with pytest.raises(ModelFailure) as caught:
        check_model(place)
    assert "models pull openbmb/MiniCPM5-2B-MLX" in caught.value.advice


ROPE = {
    "where mlx-lm looks": ({"rope_theta": 5e6, "rope_scaling": None}, 5e6, None),
    "where transformers 5 writes": (
        {"rope_parameters": {"rope_theta": 5e6, "rope_type": "default"}}, 5e6, None),
    "with scaling": (
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2.0}},
        5e5, {"rope_type": "linear", "factor": 2.0}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROPE)
def test_the_rotation_is_found(name: str):
    config, theta, scaling = ROPE[name]
    found = with_rope_parameters(config)
    assert (found["rope_theta"], found["rope_scaling"]) == (theta, scaling)


def outcome(path: Path) -> str:
    """What reading a header comes to: "tensors", or the reason of the failure."""
    try:
        read_header(path)
    except ModelFailure as failure:
        return failure.reason
    return "tensors"


@given(content=st.binary(max_size=200))
def test_any_bytes_end_in_words_or_tensors(content: bytes, tmp_path_factory: Any):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    assert outcome(path) in ("tensors", "incomplete", "corrupt")


@given(
    header=st.recursive(
        st.none() | st.integers() | st.text(max_size=5) | st.booleans(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["dtype", "shape", "data_offsets", "w", "__metadata__"]),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_header_ends_in_words_or_tensors(header: Any, tmp_path_factory: Any):
    text = json.dumps(header).encode()
    path = tmp_path_factory.getbasetemp() / "header.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert outcome(path) in ("tensors", "incomplete", "corrupt")
