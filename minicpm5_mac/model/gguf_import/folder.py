"""The whole import: one GGUF file in, one model folder out, complete or not there at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import mlx.core as mx

from minicpm5_mac.model.gguf_import.configuration import configuration, generation_configuration
from minicpm5_mac.model.gguf_import.reading import read_gguf, refuse_unreadable_types
from minicpm5_mac.model.gguf_import.tokenizer import tokenizer_files
from minicpm5_mac.model.gguf_import.weights import ModelWeights, model_weights

# A shard is held in memory while it is written.
SHARD_BYTES = 2 * 1024**3


def write_model_folder(
    source: Path, folder: Path, sampling: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Write the model of a GGUF file into an existing empty folder.

    sampling: defaults for generation_config.json where the file itself advises none.
    Everything is checked before anything is written. Raises ModelFailure (foreign, incomplete,
    corrupt, not_found) and OSError for a full disk.
    """
    file = read_gguf(source)
    config = configuration(file)
    refuse_unreadable_types(file)
    weights = model_weights(file, config)
    tokens = tokenizer_files(file, config["vocab_size"])

    config["torch_dtype"] = str(weights.compute_dtype).removeprefix("mlx.core.")
    if weights.quantization is not None:
        # Two names for the same thing, both of which mlx-lm's own converter writes.
        config["quantization"] = config["quantization_config"] = weights.quantization
    _write_weights(weights, folder)
    _write_json(folder / "config.json", config)
    advised = {**sampling, **generation_configuration(file)}
    _write_json(folder / "generation_config.json", advised)
    tokens.tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokens.configuration)
    if tokens.template is not None:
        (folder / "chat_template.jinja").write_text(tokens.template, encoding="utf-8")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_weights(weights: ModelWeights, folder: Path) -> None:
    shards: list[list[str]] = []
    shard: dict[str, mx.array] = {}
    total = 0

    def close_shard() -> None:
        mx.save_safetensors(
            str(folder / f"shard-{len(shards)}.safetensors"), shard, {"format": "mlx"}
        )
        shards.append(list(shard))
        shard.clear()

    for name, array in weights.arrays():
        if shard and sum(a.nbytes for a in shard.values()) + array.nbytes > SHARD_BYTES:
            close_shard()
        shard[name] = array
        total += array.nbytes
    close_shard()

    placed: dict[str, str] = {}
    for index, names in enumerate(shards):
        final = (
            "model.safetensors"
            if len(shards) == 1
            else f"model-{index + 1:05d}-of-{len(shards):05d}.safetensors"
        )
        (folder / f"shard-{index}.safetensors").rename(folder / final)
        placed |= dict.fromkeys(names, final)
    _write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))},
    )
