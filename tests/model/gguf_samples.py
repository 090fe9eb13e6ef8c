"""Small GGUF files as llama.cpp's converter writes them, and what their model must compute.

Tensors are laid out as in a GGUF file: Q and K with each head's rows interleaved for llama.cpp's
rotation of neighbours. The reference rotates neighbours too, so it shares nothing with the import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quants
from tokenizers import Tokenizer, decoders, trainers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import PreTokenizer

CONTROLS = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)
TEXT = (
    "The quick brown fox jumps over the lazy dog. It's 12,345 o'clock; we've 99 red balloons!",
    "def f(x):\n    return x ** 2  # square\n\n\tprint('done')",
    "你好，世界。Привет, мир! Żółć façade naïve 👍🏽 日本語",
)


@dataclass(frozen=True)
class Shape:
    """A llama model's sizes; head_dim is not hidden / heads, so that nothing may assume it."""

    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    inner: int = 96
    layers: int = 2
    theta: float = 5000.0
    epsilon: float = 1e-5


@dataclass
class Sample:
    """A model to be written. types: tensor name (or its last part) to a GGUF type's name."""

    vocabulary: int
    shape: Shape = field(default_factory=Shape)
    default_type: str = "F32"
    types: dict[str, str] = field(default_factory=dict)
    tied: bool = False
    seed: int = 0
    biases: tuple[str, ...] = ()

    def type_of(self, name: str) -> str:
        """One-dimensional tensors stay float32, as the converter leaves them."""
        if name.endswith(("norm.weight", ".bias")):
            return "F32"
        part = name.removesuffix(".weight").rpartition(".")[2]
        return self.types.get(name, self.types.get(part, self.default_type))

    def weights(self) -> dict[str, np.ndarray]:
        """Float weights in GGUF's layout, before they are stored in their types."""
        shape, random = self.shape, np.random.default_rng(self.seed)

        def matrix(rows: int, columns: int) -> np.ndarray:
            return (random.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)

        def norm() -> np.ndarray:
            # Whole 64ths around one, which every 16-bit type holds, as real models' norms are.
            return (1 + random.integers(-32, 32, shape.hidden) / 64).astype(np.float32)

        weights = {"token_embd.weight": matrix(self.vocabulary, shape.hidden) * 4}
        for layer in range(shape.layers):
            path = f"blk.{layer}."
            queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
            weights |= {
                path + "attn_norm.weight": norm(),
                path + "attn_q.weight": matrix(queries, shape.hidden) * 2,
                path + "attn_k.weight": matrix(keys, shape.hidden) * 2,
                path + "attn_v.weight": matrix(keys, shape.hidden),
                path + "attn_output.weight": matrix(shape.hidden, queries),
                path + "ffn_norm.weight": norm(),
                path + "ffn_gate.weight": matrix(shape.inner, shape.hidden),
                path + "ffn_up.weight": matrix(shape.inner, shape.hidden),
                path + "ffn_down.weight": matrix(shape.hidden, shape.inner),
            }
            for part in self.biases:
                rows = len(weights[f"{path}{part}.weight"])
                bias = random.standard_normal(rows).astype(np.float16).astype("f4")
                weights[f"{path}{part}.bias"] = bias
        weights["output_norm.weight"] = norm()
        if not self.tied:
            weights["output.weight"] = matrix(self.vocabulary, shape.hidden)
        return weights

    def stored(self) -> dict[str, np.ndarray]:
        """The float values that the file's tensors stand for, after rounding to their types."""
        return {
            name: _round_trip(value, self.type_of(name)) for name, value in self.weights().items()
        }

    def write(self, path: Path, tokens: dict[str, Any], **metadata: Any) -> Path:
        """Write the file. metadata: keys (with __ for a dot) that replace or, if None, drop."""
        shape = self.shape
        values: dict[str, Any] = {
            "llama.block_count": shape.layers,
            "llama.context_length": 256,
            "llama.embedding_length": shape.hidden,
            "llama.feed_forward_length": shape.inner,
            "llama.attention.head_count": shape.heads,
            "llama.attention.head_count_kv": shape.kv_heads,
            "llama.attention.key_length": shape.head_dim,
            "llama.attention.value_length": shape.head_dim,
            "llama.rope.dimension_count": shape.head_dim,
            "llama.rope.freq_base": shape.theta,
            "llama.attention.layer_norm_rms_epsilon": shape.epsilon,
            **tokens,
            **{key.replace("__", "."): value for key, value in metadata.items()},
        }
        writer = GGUFWriter(path, values.pop("general.architecture", "llama"))
        for key, value in values.items():
            if value is not None:
                _add(writer, key, value)
        for name, value in self.weights().items():
            kind = GGMLQuantizationType[self.type_of(name)]
            writer.add_tensor(name, quants.quantize(value, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path


def reference_logits(weights: dict[str, np.ndarray], shape: Shape, ids: list[int]) -> np.ndarray:
    """Logits [tokens, vocabulary] of llama as llama.cpp runs it, in float64."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["token_embd.weight"][ids]
    length, size = len(ids), shape.head_dim
    angles = np.arange(length)[:, None] * shape.theta ** (-np.arange(0, size, 2) / size)[None]
    turn = np.exp(1j * angles)[:, None, :]

    def norm(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return value / np.sqrt(np.mean(value**2, -1, keepdims=True) + shape.epsilon) * weight

    def rotated(value: np.ndarray) -> np.ndarray:
        pairs = value[..., 0::2] + 1j * value[..., 1::2]
        out = np.empty_like(value)
        out[..., 0::2], out[..., 1::2] = (pairs * turn).real, (pairs * turn).imag
        return out

    def linear(value: np.ndarray, name: str) -> np.ndarray:
        return value @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    for layer in range(shape.layers):
        path = f"blk.{layer}."
        h = norm(x, w[path + "attn_norm.weight"])
        q = rotated(linear(h, path + "attn_q").reshape(length, shape.heads, size))
        k = rotated(linear(h, path + "attn_k").reshape(length, shape.kv_heads, size))
        v = linear(h, path + "attn_v").reshape(length, shape.kv_heads, size)
        k, v = (np.repeat(part, shape.heads // shape.kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size)
        scores += np.triu(np.full((length, length), -np.inf), 1)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", shares, v).reshape(length, -1)
        x = x + linear(mixed, path + "attn_output")
        h = norm(x, w[path + "ffn_norm.weight"])
        gate = linear(h, path + "ffn_gate")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, path + "ffn_up"), path + "ffn_down")
    x = norm(x, w["output_norm.weight"])
    return x @ w.get("output.weight", w["token_embd.weight"]).T


def byte_level_tokenizer(
    pre: PreTokenizer, *, whole_words: bool = False, extra: tuple[str, ...] = ()
) -> Tokenizer:
    """A trained byte-level BPE tokenizer, which is the reference for what its import encodes."""
    tokenizer = Tokenizer(BPE(ignore_merges=whole_words))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(CONTROLS),
        initial_alphabet=sorted(_byte_alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 4, trainer)
    tokenizer.add_tokens(list(extra))
    return tokenizer


def byte_level_metadata(tokenizer: Tokenizer, pre: str) -> dict[str, Any]:
    """A trained tokenizer as the metadata that the converter makes of it."""
    import json

    stored = json.loads(tokenizer.to_str())
    ids = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    added = {entry["content"]: entry["special"] for entry in stored["added_tokens"]}
    kinds = [
        TokenType.CONTROL if added.get(text) else
        TokenType.USER_DEFINED if text in added else TokenType.NORMAL
        for text, _ in ids
    ]  # fmt: skip
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [text for text, _ in ids],
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in stored["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": tokenizer.token_to_id("<s>"),
        "tokenizer.ggml.eos_token_id": tokenizer.token_to_id("</s>"),
        "tokenizer.ggml.padding_token_id": tokenizer.token_to_id("</s>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def _byte_alphabet() -> list[str]:
    from tokenizers.pre_tokenizers import ByteLevel

    return ByteLevel.alphabet()


def _round_trip(value: np.ndarray, kind: str) -> np.ndarray:
    stored_type = GGMLQuantizationType[kind]
    return quants.dequantize(quants.quantize(value, stored_type), stored_type)


def _add(writer: GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
