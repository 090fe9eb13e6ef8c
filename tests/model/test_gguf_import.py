"""An imported GGUF file computes what its weights say, whatever types it mixes."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from gguf_samples import Sample, Shape, byte_level_metadata, byte_level_tokenizer, reference_logits
from mlx.utils import tree_map
from mlx_lm.utils import load_model
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from minicpm5_mac.model.check import check_model
from minicpm5_mac.model.gguf_import import folder as import_folder
from minicpm5_mac.model.gguf_import.configuration import llama3_factors
from minicpm5_mac.model.gguf_import.folder import write_model_folder

IDS = [5, 300, 17, 42, 301, 7, 7, 99]

MIXES = {
    "all float32": Sample(0),
    "float16": Sample(0, default_type="F16"),
    "bfloat16": Sample(0, default_type="BF16"),
    "Q4_0": Sample(0, default_type="Q4_0"),
    "Q4_1": Sample(0, default_type="Q4_1"),
    "Q8_0": Sample(0, default_type="Q8_0"),
    "as the demo's": Sample(0, default_type="Q4_1", types={"token_embd": "Q8_0"}, tied=True),
    "every type at once": Sample(
        0,
        default_type="Q4_0",
        types={
            "token_embd": "F16",
            "attn_q": "Q8_0",
            "attn_k": "Q4_1",
            "blk.1.attn_k.weight": "F16",
            "ffn_down": "Q8_0",
            "blk.0.ffn_up.weight": "BF16",
            "output": "F32",
        },
    ),
    "biases on Q, K and V alone": Sample(
        0, default_type="F16", biases=("attn_q", "attn_k", "attn_v")
    ),
    "biases on the inner layers": Sample(0, biases=("ffn_up", "ffn_down", "ffn_gate")),
    "one KV head": Sample(0, shape=Shape(kv_heads=1), default_type="Q8_0"),
    "as many KV heads as query heads": Sample(0, shape=Shape(kv_heads=4)),
    "head_dim that is hidden / heads": Sample(0, shape=Shape(head_dim=16)),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_level_tokenizer(ByteLevel(add_prefix_space=False))


def logits_of(folder: Path) -> np.ndarray:
    """What mlx-lm computes from a folder, in float32 throughout."""
    model, _ = load_model(folder, lazy=True)
    model.update(
        tree_map(
            lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a,
            model.parameters(),
        )
    )
    return np.array(model(mx.array([IDS]))[0])


@pytest.mark.parametrize("name", MIXES)
def test_logits_are_those_of_the_weights(name: str, tokenizer: Tokenizer, tmp_path: Path):
    sample = MIXES[name]
    sample.vocabulary = tokenizer.get_vocab_size()
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))
    folder = tmp_path / "model"
    folder.mkdir()

    write_model_folder(source, folder)

    check_model(folder)
    expected = reference_logits(sample.stored(), sample.shape, IDS)
    np.testing.assert_allclose(logits_of(folder), expected, atol=2e-3 * np.abs(expected).max())


def test_types_become_per_layer_quantization(tokenizer: Tokenizer, tmp_path: Path):
    sample = MIXES["every type at once"]
    sample.vocabulary = tokenizer.get_vocab_size()
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))

    write_model_folder(source, tmp_path)

    quantization = json.loads((tmp_path / "config.json").read_text())["quantization"]
    eight = {"group_size": 32, "bits": 8, "mode": "affine"}
    assert (quantization["group_size"], quantization["bits"]) == (32, 4)
    assert quantization["model.layers.0.self_attn.q_proj"] == eight
    assert quantization["model.layers.1.mlp.down_proj"] == eight
    assert quantization["model.layers.1.self_attn.k_proj"] is False
    assert "model.layers.0.self_attn.k_proj" not in quantization  # four bits, as usual


def test_large_bfloat16_values_stay_finite(tokenizer: Tokenizer, tmp_path: Path):
    sample = Sample(tokenizer.get_vocab_size(), default_type="BF16")
    plain = sample.weights
    sample.weights = lambda: {  # type: ignore[method-assign]
        name: value * np.float32(1e6) if name == "output.weight" else value
        for name, value in plain().items()
    }
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))

    write_model_folder(source, tmp_path)

    output = mx.load(str(tmp_path / "model.safetensors"))["lm_head.weight"]
    assert output.dtype == mx.bfloat16
    stored = sample.stored()["output.weight"]
    assert np.abs(stored).max() > 65504  # float16's largest
    np.testing.assert_array_equal(np.array(output.astype(mx.float32)), stored)


def test_norms_do_not_turn_a_sixteen_bit_model_into_float32(small_model: Path):
    arrays = mx.load(str(small_model / "model.safetensors"))
    assert {a.dtype for a in arrays.values()} == {mx.float16, mx.uint32}


def test_a_large_model_is_written_in_shards(
    small_gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(import_folder, "SHARD_BYTES", 20_000)
    write_model_folder(small_gguf, tmp_path)
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    check_model(tmp_path)
    assert logits_of(tmp_path).shape[0] == len(IDS)


CONFIGURATIONS = {
    "theta and epsilon come back as they were given": (
        {},
        {"rope_theta": 5000.0, "rms_norm_eps": 1e-05, "rope_scaling": None},
    ),
    "sizes": (
        {},
        {"head_dim": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64},
    ),
    "linear scaling": (
        {"llama__rope__scaling__type": "linear", "llama__rope__scaling__factor": 4.0},
        {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    ),
    "linear scaling, the old key": (
        {"llama__rope__scale_linear": 2.0},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    ),
    "yarn": (
        {
            "llama__rope__scaling__type": "yarn",
            "llama__rope__scaling__factor": 4.0,
            "llama__rope__scaling__original_context_length": 64,
        },
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 64,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
            }
        },
    ),
    "no theta means llama's": ({"llama__rope__freq_base": None}, {"rope_theta": 10000.0}),
    "settings without effect are no obstacle": (
        {"llama__attention__sliding_window": 0, "llama__expert_count": 0},
        {},
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configuration(name: str, tokenizer: Tokenizer, tmp_path: Path):
    metadata, expected = CONFIGURATIONS[name]
    sample = Sample(tokenizer.get_vocab_size())
    tokens = byte_level_metadata(tokenizer, "gpt-2")
    write_model_folder(sample.write(tmp_path / "m.gguf", tokens, **metadata), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert {key: config[key] for key in expected} == expected


@pytest.mark.parametrize(("factor", "original"), [(8.0, 8192), (32.0, 8192)])
def test_llama3_scaling_is_recognized_by_its_factors(
    factor: float, original: int, tokenizer: Tokenizer, tmp_path: Path
):
    sample = Sample(tokenizer.get_vocab_size(), shape=Shape(theta=500000.0))
    factors = llama3_factors(32, 500000.0, factor, original).astype(np.float32)
    plain = sample.weights
    sample.weights = lambda: plain() | {"rope_freqs.weight": factors}  # type: ignore[method-assign]
    tokens = byte_level_metadata(tokenizer, "gpt-2")

    write_model_folder(sample.write(tmp_path / "m.gguf", tokens), tmp_path)

    scaling = json.loads((tmp_path / "config.json").read_text())["rope_scaling"]
    assert (scaling["rope_type"], scaling["factor"]) == ("llama3", factor)
    model, _ = load_model(tmp_path, lazy=True)
    frequencies = np.array(model.layers[0].self_attn.rope._freqs)
    plain_frequencies = 500000.0 ** (np.arange(0, 32, 2) / 32)
    np.testing.assert_allclose(frequencies, plain_frequencies * factors, rtol=1e-4)


def test_replies_end_at_every_token_that_ends_a_turn(tokenizer: Tokenizer, tmp_path: Path):
    tokens = byte_level_metadata(tokenizer, "gpt-2")
    sample = Sample(tokenizer.get_vocab_size())
    source = sample.write(tmp_path / "m.gguf", tokens, general__sampling__top_p=0.95)

    write_model_folder(source, tmp_path)

    generation = json.loads((tmp_path / "generation_config.json").read_text())
    ends = {tokenizer.token_to_id("</s>"), tokenizer.token_to_id("<|im_end|>")}
    assert set(generation["eos_token_id"]) == ends
    assert generation["top_p"] == 0.95
