"""Is this folder a whole llama model in MLX format? Asked before anything is loaded from it.

Nothing is run and no weights are read: file names, configuration, safetensors headers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.llama_shapes import expected_shapes
from minicpm5_mac.model.safetensors_header import StoredTensor, read_header

INDEX = "model.safetensors.index.json"
WEIGHT_PATTERN = "model*.safetensors"  # what mlx-lm loads

_ARCHITECTURE = "LlamaForCausalLM"
_NUMBERS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
    "vocab_size",
)
_ANOTHER = (
    "Take a conversion of the model in MLX format (names ending in -MLX or from mlx-community), "
    "or use the default model."
)


@dataclass(frozen=True)
class CheckedModel:
    """What the check found. config: as mlx-lm is to be given it; weight_bytes: on disk."""

    config: dict[str, Any]
    weight_bytes: int


def check_model(folder: Path) -> CheckedModel:
    """Check a folder. Raises ModelFailure: incomplete, corrupt, or foreign; it names the file."""
    names = {path.name for path in folder.iterdir()}
    if "config.json" not in names:
        refuse_foreign_files(str(folder), names)
        raise ModelFailure("incomplete", f"{folder} has no config.json.", _again(folder))
    config = read_json(folder / "config.json", _again(folder))
    refuse_foreign_config(str(folder), config)
    refuse_foreign_files(str(folder), names)
    if "tokenizer.json" not in names:
        raise ModelFailure("incomplete", f"{folder} has no tokenizer.json.", _again(folder))
    read_json(folder / "tokenizer.json", _again(folder))
    try:
        tensors = _tensors(folder)
    except ModelFailure as failure:
        raise ModelFailure(failure.reason, failure.text, _again(folder)) from failure
    _compare(folder, config, tensors)
    return CheckedModel(
        with_rope_parameters(config), sum(tensor.bytes for tensor in tensors.values())
    )


def refuse_foreign_files(name: str, files: Collection[str]) -> None:
    """Raise ModelFailure (foreign) for a folder or repository whose weights MLX does not load."""
    if any(Path(file).match(WEIGHT_PATTERN) for file in files):
        return
    endings = {Path(file).suffix for file in files}
    if ".gguf" in endings:
        advice = "Import one of its files: minicpm5-mac models import FILE.gguf"
        raise ModelFailure("foreign", f"{name} holds GGUF files, not MLX weights.", advice)
    if endings & {".bin", ".pt", ".pth", ".ckpt"}:
        raise ModelFailure(
            "foreign",
            f"{name} holds PyTorch weights (pickle files), which can run code and are never "
            "loaded here.",
            _ANOTHER,
        )
    if ".safetensors" in endings:
        raise ModelFailure(
            "foreign", f"{name} has no weights named {WEIGHT_PATTERN}, as MLX has them.", _ANOTHER
        )
    if files:
        raise ModelFailure("incomplete", f"{name} holds no weights.", _ANOTHER)
    raise ModelFailure("not_found", f"{name} is empty.", _ANOTHER)


def refuse_foreign_config(name: str, config: dict[str, Any]) -> None:
    """Raise ModelFailure (foreign) for another architecture, other packing, or code to run."""
    kind, architectures = config.get("model_type"), config.get("architectures") or [_ARCHITECTURE]
    if kind != "llama" or _ARCHITECTURE not in architectures:
        raise ModelFailure(
            "foreign",
            f"{name} is a {kind or 'nameless'} model ({', '.join(map(str, architectures))}); this "
            f"program runs {_ARCHITECTURE}.",
            _ANOTHER,
        )
    for key in ("auto_map", "model_file"):
        if config.get(key):
            raise ModelFailure(
                "foreign",
                f"{name} wants code of its own to be run ({key} in its config.json), which this "
                "program never does.",
                _ANOTHER,
            )
    if missing := [key for key in _NUMBERS if not isinstance(config.get(key), int)]:
        raise ModelFailure(
            "corrupt", f"The config.json of {name} lacks {', '.join(missing)}.", _ANOTHER
        )
    quantization = config.get("quantization")
    packed = config.get("quantization_config") or {}
    method = packed.get("quant_method")
    if quantization is None and method is not None:
        raise ModelFailure(
            "foreign",
            f"{name} is quantized by {method}, which MLX packs differently.",
            _ANOTHER,
        )
    modes = {_mode(quantization), *(_mode(own) for own in (quantization or {}).values())}
    if others := modes - {"affine"}:
        raise ModelFailure(
            "foreign",
            f"{name} is quantized in MLX's mode {', '.join(sorted(others))}; only affine is "
            "supported.",
            _ANOTHER,
        )


def with_rope_parameters(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with rope_theta and rope_scaling where mlx-lm's llama looks for them.

    Transformers 5 writes both into `rope_parameters`, which mlx-lm 0.32 does not read: it would
    go on with a theta of 10000 and say nothing.
    """
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict) or "rope_theta" not in rope:
        return config
    scaled = rope.get("rope_type", rope.get("type", "default")) != "default"
    return {
        **config,
        "rope_theta": rope["rope_theta"],
        "rope_scaling": {k: v for k, v in rope.items() if k != "rope_theta"} if scaled else None,
    }


def read_json(path: Path, advice: str) -> dict[str, Any]:
    """A JSON object of a model's folder. Raises ModelFailure (corrupt, or incomplete if empty)."""
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text)
    except (OSError, ValueError) as error:
        empty = path.is_file() and path.stat().st_size == 0
        raise ModelFailure(
            "incomplete" if empty else "corrupt", f"{path} cannot be read: {error}.", advice
        ) from error
    if not isinstance(value, dict):
        raise ModelFailure("corrupt", f"{path} is not a JSON object.", advice)
    return value


def _mode(quantization: Any) -> str:
    return quantization.get("mode", "affine") if isinstance(quantization, dict) else "affine"


def _again(folder: Path) -> str:
    if folder.parent.name == "snapshots":  # the hub's cache: …/models--owner--name/snapshots/commit
        repository = folder.parent.parent.name.removeprefix("models--").replace("--", "/")
        return f"Fetch it again: minicpm5-mac models pull {repository}"
    return "Copy or convert the model again."


def _tensors(folder: Path) -> dict[str, StoredTensor]:
    files = sorted(path.name for path in folder.glob(WEIGHT_PATTERN))
    placed: dict[str, str] = {}
    if (folder / INDEX).is_file():
        placed = read_json(folder / INDEX, "").get("weight_map", {})
        if missing := sorted(set(placed.values()) - set(files)):
            raise ModelFailure(
                "incomplete",
                f"{folder} lacks {len(missing)} of {len(set(placed.values()))} weight files: "
                f"{_some(missing)}.",
            )
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        found = read_header(folder / file)
        if absent := sorted(n for n, place in placed.items() if place == file and n not in found):
            raise ModelFailure("corrupt", f"{file} lacks tensors of its index: {_some(absent)}.")
        tensors |= found
    return tensors


def _compare(folder: Path, config: dict[str, Any], tensors: dict[str, StoredTensor]) -> None:
    packed = sorted(name for name in tensors if name.endswith((".qweight", ".qzeros", ".g_idx")))
    if packed:
        raise ModelFailure(
            "foreign", f"{folder} holds GPTQ or AWQ weights ({packed[0]}).", _ANOTHER
        )
    shapes = expected_shapes(config)
    if missing := [name for name in shapes if name not in tensors]:
        raise ModelFailure(
            "incomplete",
            f"{folder} lacks {len(missing)} of the {len(shapes)} tensors of its model: "
            f"{_some(missing)}.",
            _again(folder),
        )
    for name, shape in shapes.items():
        stored = tensors[name]
        scales = tensors.get(name.removesuffix(".weight") + ".scales")
        expected = shape if scales is None else _packed_shape(shape, stored, scales)
        if stored.shape != expected:
            raise ModelFailure(
                "corrupt",
                f"{name} in {folder} has shape {list(stored.shape)}, its config.json says "
                f"{list(shape)}.",
                _again(folder),
            )


def _packed_shape(
    shape: tuple[int, ...], stored: StoredTensor, scales: StoredTensor
) -> tuple[int, ...] | None:
    # Rows of 32-bit words that hold 2 to 8 bits a number, and a scale for each group of them.
    rows, columns = shape
    bits = stored.shape[-1] * 32 / columns
    groups = scales.shape[-1]
    if stored.dtype != "U32" or bits not in (2, 3, 4, 5, 6, 8) or columns % groups:
        return None
    return (rows, int(columns * bits) // 32) if scales.shape == (rows, groups) else None


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
