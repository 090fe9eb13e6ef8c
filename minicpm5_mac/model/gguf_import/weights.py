"""All tensors of a llama GGUF file under the names, layouts and types that mlx-lm loads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.blocks import BITS, GROUP_SIZE, AffineRows, to_affine
from minicpm5_mac.model.gguf_import.configuration import ROPE_FACTORS
from minicpm5_mac.model.gguf_import.reading import GGUFFile, GGUFTensor
from minicpm5_mac.model.llama_shapes import expected_shapes

_WHOLE_MODEL = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_A_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")

_DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}


@dataclass(frozen=True)
class ModelWeights:
    """What is to be written.

    arrays(): (name, array) pairs, converted one tensor at a time so that memory stays small.
    quantization: config.json's `quantization`, with one entry a layer where types are mixed; None
        for a model without quantized tensors.
    """

    file: GGUFFile
    config: dict[str, Any]
    compute_dtype: mx.Dtype
    quantization: dict[str, Any] | None
    names: dict[str, str] = field(repr=False)

    def arrays(self) -> Iterator[tuple[str, mx.array]]:
        """Every weight under its MLX name."""
        for name, target in self.names.items():
            yield from self._converted(self.file.tensors[name], target)
        yield from self._missing_biases()

    def _converted(self, tensor: GGUFTensor, target: str) -> Iterator[tuple[str, mx.array]]:
        order = self._rotary_rows(tensor)
        if tensor.type in BITS:
            rows: AffineRows = to_affine(np.asarray(tensor.data), tensor.type)
            if order is not None:
                rows = rows.take_rows(order)
            path = target.removesuffix(".weight")
            yield f"{path}.weight", mx.array(rows.packed)
            yield f"{path}.scales", mx.array(rows.scales)
            yield f"{path}.biases", mx.array(rows.biases)
            return
        values = _plain(tensor)
        if order is not None:
            values = values[mx.array(order)]
        yield target, self._in_compute_dtype(tensor, values)

    def _rotary_rows(self, tensor: GGUFTensor) -> np.ndarray | None:
        # llama.cpp rotates neighbours, mlx-lm rotates halves: its converter interleaves the rows
        # of each head of Q and K (LlamaModel.permute in convert_hf_to_gguf.py). This undoes it.
        match = _LAYER_TENSOR.fullmatch(tensor.name)
        if match is None or match[2] not in ("attn_q", "attn_k"):
            return None
        half = self.config["head_dim"] // 2
        return np.arange(tensor.shape[0]).reshape(-1, half, 2).swapaxes(1, 2).reshape(-1)

    def _in_compute_dtype(self, tensor: GGUFTensor, values: mx.array) -> mx.array:
        if values.dtype == self.compute_dtype:
            return values
        narrow = values.astype(self.compute_dtype)
        exact = bool(mx.all(narrow.astype(mx.float32) == values.astype(mx.float32)).item())
        # Norms and biases are stored as float32 whatever the model is; kept so, they would turn
        # every activation into float32. Rounded, they are as exact as what they multiply.
        rounds = len(tensor.shape) == 1 and bool(mx.all(mx.isfinite(narrow)).item())
        return narrow if exact or rounds else values

    def _missing_biases(self) -> Iterator[tuple[str, mx.array]]:
        # mlx-lm has biases on all projections of a kind or on none; a zero bias changes nothing.
        kinds = {
            "attention_bias": ("self_attn", ("q_proj", "k_proj", "v_proj", "o_proj")),
            "mlp_bias": ("mlp", ("gate_proj", "up_proj", "down_proj")),
        }
        present = set(self.names.values())
        shapes = expected_shapes(self.config)
        for key, (block, projections) in kinds.items():
            for layer in range(self.config["num_hidden_layers"]) if self.config[key] else ():
                for projection in projections:
                    path = f"model.layers.{layer}.{block}.{projection}"
                    if f"{path}.bias" not in present:
                        rows = shapes[f"{path}.weight"][0]
                        yield f"{path}.bias", mx.zeros(rows, dtype=self.compute_dtype)


def model_weights(file: GGUFFile, config: dict[str, Any]) -> ModelWeights:
    """Check every tensor against the configuration, and plan the conversion.

    Raises ModelFailure: foreign (a tensor of an unknown name or a shape that the configuration
    does not have), incomplete (a tensor is missing).
    """
    names = _mlx_names(file)
    shapes = expected_shapes(config)
    for name, target in names.items():
        shape = file.tensors[name].shape
        if target not in shapes:
            raise _foreign(file, f"it has a tensor {name} in a place where llama has none")
        if shape != shapes[target]:
            raise _foreign(file, f"{name} has shape {shape} where {shapes[target]} is expected")
    present = set(names.values())
    missing = [t for t in shapes if t not in present and not t.endswith(".bias")]
    if missing:
        raise ModelFailure(
            "incomplete",
            f"{file.path.name} lacks {len(missing)} tensors of its model, such as the one for "
            f"{missing[0]}.",
            "A model split into several files must be merged first (llama-gguf-split --merge).",
        )
    return ModelWeights(
        file, config, _compute_dtype(file, names), _quantization(file, names), names
    )


def _mlx_names(file: GGUFFile) -> dict[str, str]:
    names = {}
    for name in file.tensors:
        if name == ROPE_FACTORS:  # it is in the configuration
            continue
        if match := _LAYER_TENSOR.fullmatch(name):
            layer, part, kind = match.groups()
            target = _IN_A_LAYER.get(part)
            path = f"model.layers.{layer}.{target}"
        else:
            part, _, kind = name.partition(".")
            target = path = _WHOLE_MODEL.get(part)
        if target is None:
            raise _foreign(file, f"it has a tensor {name}, which a plain llama model has not")
        names[name] = f"{path}.{kind}"
    return names


def _foreign(file: GGUFFile, why: str) -> ModelFailure:
    return ModelFailure(
        "foreign",
        f"{file.path.name} cannot be imported faithfully: {why}.",
        "Take a file of a plain llama model.",
    )


def _plain(tensor: GGUFTensor) -> mx.array:
    if tensor.type == "BF16":
        # The reader gives bytes: MLX has the type, numpy has not.
        words = np.ascontiguousarray(tensor.data).view(np.uint16).reshape(tensor.shape)
        return mx.array(words).view(mx.bfloat16)
    return mx.array(np.ascontiguousarray(tensor.data)).astype(_DTYPES[tensor.type])


def _matrices(file: GGUFFile, names: dict[str, str]) -> list[GGUFTensor]:
    return [file.tensors[name] for name in names if len(file.tensors[name].shape) == 2]


def _compute_dtype(file: GGUFFile, names: dict[str, str]) -> mx.Dtype:
    # Scales of quantized blocks are float16, and MLX computes in the type of the scales.
    kinds = {tensor.type for tensor in _matrices(file, names)}
    if kinds == {"F32"}:
        return mx.float32
    return mx.bfloat16 if kinds <= {"BF16", "F32"} else mx.float16


def _quantization(file: GGUFFile, names: dict[str, str]) -> dict[str, Any] | None:
    bits = {
        names[tensor.name].removesuffix(".weight"): BITS.get(tensor.type)
        for tensor in _matrices(file, names)
    }
    quantized = [value for value in bits.values() if value is not None]
    if not quantized:
        return None
    usual = max(sorted(set(quantized)), key=quantized.count)
    quantization: dict[str, Any] = {"group_size": GROUP_SIZE, "bits": usual, "mode": "affine"}
    for path, own in bits.items():
        if own is None:
            quantization[path] = False
        elif own != usual:
            quantization[path] = {"group_size": GROUP_SIZE, "bits": own, "mode": "affine"}
    return quantization
