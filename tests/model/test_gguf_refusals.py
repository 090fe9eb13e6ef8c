"""What cannot be read faithfully is refused by name, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants
from gguf_samples import Sample, byte_level_metadata, byte_level_tokenizer
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.folder import write_model_folder
from minicpm5_mac.model.imported import import_gguf, imported_models_dir


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return byte_level_tokenizer(ByteLevel(add_prefix_space=False))


def refusal(source: Path, folder: Path) -> ModelFailure:
    folder.mkdir()
    with pytest.raises(ModelFailure) as caught:
        write_model_folder(source, folder)
    assert not list(folder.iterdir())
    assert caught.value.exit_code == 3
    return caught.value


METADATA = {
    "another architecture": ({"general__architecture": "qwen3"}, "qwen3"),
    "an expert mixture": ({"llama__expert_count": 8}, "llama.expert_count = 8"),
    "a sliding window": ({"llama__attention__sliding_window": 128}, "sliding_window = 128"),
    "a scaled embedding": ({"llama__embedding_scale": 12.0}, "llama.embedding_scale"),
    "a setting nobody knows": ({"llama__new_trick": True}, "llama.new_trick"),
    "another attention scale": ({"llama__attention__scale": 0.5}, "attention.scale"),
    "partial rotation": ({"llama__rope__dimension_count": 16}, "rope.dimension_count = 16"),
    "values of another size": ({"llama__attention__value_length": 16}, "value_length"),
    "layers that differ": ({"llama__attention__head_count": [4, 2]}, "layer to layer"),
    "unknown rope scaling": ({"llama__rope__scaling__type": "longrope",
                              "llama__rope__scaling__factor": 2.0}, "longrope"),
    "no context length": ({"llama__context_length": None}, "llama.context_length"),
    "a layer too many": ({"llama__block_count": 3}, "model.layers.2"),
    "a layer too few": ({"llama__block_count": 1}, "blk.1."),
    "other head sizes than the tensors": ({"llama__attention__head_count": 8}, "attn_q.weight"),
    "an unknown pre-tokenizer": ({"tokenizer__ggml__pre": "kimi-k2"}, "kimi-k2"),
    "an unknown kind of vocabulary": ({"tokenizer__ggml__model": "t5"}, "'t5'"),
    "no types of tokens": ({"tokenizer__ggml__token_type": None}, "tokenizer.ggml.token_type"),
    "no vocabulary": ({"tokenizer__ggml__tokens": None}, "tokenizer.ggml.tokens"),
    "a vocabulary of another size": ({"tokenizer__ggml__tokens": ["a", "b"],
                                      "tokenizer__ggml__token_type": [1, 1]}, "2 tokens"),
    "lists of different lengths": ({"tokenizer__ggml__token_type": [1, 1]}, "differ in length"),
    "merges of tokens that are not there": ({"tokenizer__ggml__merges": ["qq zz"]}, "qq"),
    "a begin token that is none": ({"tokenizer__ggml__bos_token_id": 99999}, "bos_token_id"),
}  # fmt: skip


@pytest.mark.parametrize("name", METADATA)
def test_metadata_that_changes_the_model(name: str, tokenizer: Tokenizer, tmp_path: Path):
    metadata, named = METADATA[name]
    sample = Sample(tokenizer.get_vocab_size())
    tokens = byte_level_metadata(tokenizer, "gpt-2")
    source = sample.write(tmp_path / "m.gguf", tokens, **metadata)
    failure = refusal(source, tmp_path / "out")
    assert named in str(failure)
    assert "m.gguf" in str(failure)


@pytest.mark.parametrize("kind", ["Q5_0", "Q5_1", "TQ1_0", "TQ2_0", "MXFP4"])
def test_every_tensor_type_without_an_exact_form_is_named(
    kind: str, tokenizer: Tokenizer, tmp_path: Path
):
    sample = Sample(tokenizer.get_vocab_size(), default_type="Q8_0")
    plain = sample.weights
    sample.weights = lambda: {  # type: ignore[method-assign]
        name: np.zeros((value.shape[0], 256), np.float32) if "ffn_up" in name else value
        for name, value in plain().items()
    }
    sample.shape = type(sample.shape)(hidden=64)
    sample.types = {"ffn_up": kind}
    # Rows of 256, as the larger blocks need; the type is looked at before shapes are.
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))
    failure = refusal(source, tmp_path / "out")
    assert failure.reason == "foreign"
    assert f"{kind} (2 tensors, such as blk.0.ffn_up.weight)" in failure.text


def test_a_tensor_that_llama_has_not(tokenizer: Tokenizer, tmp_path: Path):
    sample = Sample(tokenizer.get_vocab_size())
    plain = sample.weights
    sample.weights = lambda: (
        plain()
        | {  # type: ignore[method-assign]
            "blk.0.attn_q_norm.weight": np.ones(32, np.float32)
        }
    )
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))
    assert "blk.0.attn_q_norm.weight" in str(refusal(source, tmp_path / "out"))


def test_rotary_factors_of_no_known_scaling(tokenizer: Tokenizer, tmp_path: Path):
    sample = Sample(tokenizer.get_vocab_size())
    plain = sample.weights
    factors = np.linspace(1, 3, 16, dtype=np.float32)
    sample.weights = lambda: plain() | {"rope_freqs.weight": factors}  # type: ignore[method-assign]
    source = sample.write(tmp_path / "m.gguf", byte_level_metadata(tokenizer, "gpt-2"))
    assert "rope_freqs.weight" in str(refusal(source, tmp_path / "out"))


@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.9, 0.999])
def test_a_file_cut_off_anywhere_is_named_as_such(share: float, small_gguf: Path, tmp_path: Path):
    whole = small_gguf.read_bytes()
    source = tmp_path / "cut.gguf"
    source.write_bytes(whole[: int(len(whole) * share)])
    failure = refusal(source, tmp_path / "out")
    assert failure.reason == "incomplete"
    assert "cut off" in failure.text


DAMAGED: dict[str, Any] = {
    "an absurd number of tensors": (8, (1 << 60).to_bytes(8, "little")),
    "an absurd number of keys": (16, (1 << 60).to_bytes(8, "little")),
    "an unknown version": (4, (99).to_bytes(4, "little")),
    "the other byte order": (4, (3).to_bytes(4, "big")),
    "noise": (24, bytes(range(256)) * 8),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_header_ends_in_words(name: str, small_gguf: Path, tmp_path: Path):
    place, noise = DAMAGED[name]
    content = bytearray(small_gguf.read_bytes())
    content[place : place + len(noise)] = noise
    source = tmp_path / "damaged.gguf"
    source.write_bytes(content)
    assert refusal(source, tmp_path / "out").reason in ("incomplete", "corrupt", "foreign")


def test_what_is_not_gguf(tmp_path: Path):
    source = tmp_path / "text.gguf"
    source.write_text("no model at all")
    assert "not a GGUF file" in str(refusal(source, tmp_path / "out"))
    with pytest.raises(ModelFailure, match="cannot be read"):
        write_model_folder(tmp_path / "absent.gguf", tmp_path)


def test_an_import_that_fails_leaves_no_folder(home: Path, tmp_path: Path):
    source = tmp_path / "text.gguf"
    source.write_text("no model at all")
    with pytest.raises(ModelFailure):
        import_gguf(source, "broken", lambda event: None)
    assert list(imported_models_dir().iterdir()) == []


def test_an_import_does_not_take_another_models_place(home: Path, small_gguf: Path):
    first = import_gguf(small_gguf, "mine", lambda event: None)
    with pytest.raises(ModelFailure, match="there already"):
        import_gguf(small_gguf, "mine", lambda event: None)
    again = import_gguf(small_gguf, "mine", lambda event: None, replace=True)
    assert first == again
    assert first.revision.startswith("sha256:")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", ".hidden"])
def test_a_name_must_be_one_folder(name: str, home: Path, small_gguf: Path):
    with pytest.raises(ModelFailure, match="no name for a model"):
        import_gguf(small_gguf, name, lambda event: None)


def test_quantized_zero_rows_are_no_trouble():
    # quants.quantize divides by the largest value of a block; the sample above uses zero rows.
    zero = quants.quantize(np.zeros((1, 32), np.float32), GGMLQuantizationType.Q8_0)
    assert not quants.dequantize(zero, GGMLQuantizationType.Q8_0).any()
