"""From a model folder to a model that runs: weights, prompt encoder, memory figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

from minicpm5_mac import locations
from minicpm5_mac.failure import Failure
from minicpm5_mac.model import openblas
from minicpm5_mac.model.inventory import quantization_text
from minicpm5_mac.model.prompt import PromptEncoder, load_prompt_encoder
from mlx_kernels.llama import install

# float32 weights beside the quantized ones while they are converted, and room for the rest.
FLOAT32_SHARE = 0.5


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory.

    config, generation_config: the folder's files. weight_bytes: what the weights take now.
    context_length: tokens that it was made for. device: "gpu" or "cpu". kv_bits: of the KV
    cache, 16 for one in the compute dtype. notes: what the user should know about how it was
    loaded.
    """

    model: nn.Module
    encoder: PromptEncoder
    config: dict[str, Any]
    generation_config: dict[str, Any]
    weight_bytes: int
    context_length: int
    quantization: str
    device: str
    kv_bits: int
    notes: tuple[str, ...] = field(default=())

    def make_cache(self) -> list[Any]:
        """An empty KV cache, one object a layer."""
        return make_prompt_cache(self.model)


def load(
    folder: Path,
    config: dict[str, Any] | None = None,
    *,
    available_memory: int | None = None,
    kv_bits: int = 16,
    kernels: bool = True,
    as_mlx_lm: bool = False,
) -> LoadedModel:
    """Load a folder in MLX format. Raises Failure where it is not one or is damaged.

    config: instead of what config.json says, as `check_model` returns it. available_memory: bytes
    that may be used; float32 weights on a CPU are chosen by it. kv_bits: 16, 8 or 4, of the KV
    cache. kernels: Metal kernels where a measurement on this machine, kept in the cache folder,
    finds them right and faster; otherwise plain MLX. as_mlx_lm: leave the model as mlx-lm has it,
    to measure against.
    """
    encoder = load_prompt_encoder(folder)
    try:
        model, config = load_model(folder, lazy=True, model_config=config)
    except (ValueError, KeyError, TypeError, RuntimeError, OSError) as error:
        raise Failure(
            f"{folder} cannot be loaded as an MLX model: {error}",
            "Download it again with `minicpm5-mac models pull`, or use another conversion.",
            exit_code=3,
        ) from error
    notes: list[str] = []
    device = device_kind()
    quantization = quantization_text(config)
    if device == "cpu":
        notes += _suit_cpu(model, available_memory)
    if not as_mlx_lm:
        installed = install(
            model,
            kv_bits=kv_bits,
            kernels=kernels,
            measurements=locations.cache_dir() / "kernels",
        )
        kv_bits = installed.kv_bits
        notes += installed.notes
    mx.eval(model.parameters())
    parameters: dict[str, mx.array] = dict(tree_flatten(model.parameters()))
    path = folder / "generation_config.json"
    generation = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return LoadedModel(
        model=model,
        encoder=encoder,
        config=config,
        generation_config=generation,
        weight_bytes=sum(array.nbytes for array in parameters.values()),
        context_length=int(config.get("max_position_embeddings") or 2048),
        quantization=quantization,
        device=device,
        kv_bits=kv_bits,
        notes=tuple(notes),
    )


def device_kind() -> str:
    """ "gpu" where MLX has Metal, otherwise "cpu"."""
    return "gpu" if mx.default_device().type == mx.DeviceType.gpu else "cpu"


def number_bytes(device: str) -> int:
    """Bytes of a number in an unquantized KV cache: float32 on a CPU, 16 bits on Metal."""
    return 4 if device == "cpu" else 2


def _suit_cpu(model: nn.Module, available_memory: int | None) -> list[str]:
    """Change dtypes to those that MLX's CPU backend is fast with; notes for the user.

    Measured on 2 cores: a quantized product takes 8.9 ms with float32 scales, 74 ms with
    bfloat16, 349 ms with float16; and float32 weights with OpenBLAS prefill 25 times faster than
    4-bit ones, which do not go through BLAS.
    """
    numbers = sum(_size(module) for _, module in _quantized(model))
    fits = available_memory is None or 4 * numbers < FLOAT32_SHARE * available_memory
    if openblas.preload() and fits:
        for path, module in list(_quantized(model)):
            _replace(model, path, _dequantized(module))
        model.apply(_to_float32)
        return ["On the CPU, with float32 weights and OpenBLAS."]
    model.apply(_to_float32)
    if openblas.preload():
        return ["On the CPU; memory is too small for float32 weights, which would be faster."]
    return ["On the CPU, without OpenBLAS; `apt install libopenblas0-pthread` makes it faster."]


def _to_float32(array: mx.array) -> mx.array:
    return array.astype(mx.float32) if mx.issubdtype(array.dtype, mx.floating) else array


def _quantized(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for path, module in model.named_modules():
        if isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding):
            yield path, module


def _size(module: Any) -> int:
    return module.weight.size * 32 // module.bits


def _dequantized(module: Any) -> nn.Module:
    weight = mx.dequantize(
        module.weight,
        tree_map(_to_float32, module.scales),
        None if module.get("biases") is None else _to_float32(module.biases),
        group_size=module.group_size,
        bits=module.bits,
        mode=module.mode,
    ).astype(mx.float32)
    mx.eval(weight)
    if isinstance(module, nn.QuantizedEmbedding):
        plain: nn.Module = nn.Embedding(1, 1)
    else:
        plain = nn.Linear(1, 1, bias="bias" in module)
        if "bias" in module:
            plain.bias = module.bias
    plain.weight = weight
    return plain


def _replace(model: nn.Module, path: str, module: nn.Module) -> None:
    *parents, name = path.split(".")
    owner: Any = model
    for part in parents:
        owner = owner[int(part)] if isinstance(owner, list) else getattr(owner, part)
    setattr(owner, name, module)
