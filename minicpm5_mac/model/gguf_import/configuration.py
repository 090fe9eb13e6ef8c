"""The metadata of a llama GGUF file as config.json and generation_config.json."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.gguf_import.reading import GGUFFile

ROPE_FACTORS = "rope_freqs.weight"

# Llama 3's rope scaling, (factor, original context): Llama 3.1 and Llama 3.2. A GGUF file keeps
# only the factors computed from it.
_LLAMA3_SCALINGS = ((8.0, 8192), (32.0, 8192))
_LLAMA3_LOW, _LLAMA3_HIGH = 1.0, 4.0

_UNDERSTOOD = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.scale",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "vocab_size",
}

# These change what the model computes only where they are not the value given here.
_HARMLESS = {
    "attention.causal": True,
    "attention.sliding_window": 0,
    "expert_count": 0,
    "expert_used_count": 0,
    "logit_scale": 0.0,
    "embedding_scale": 0.0,
    "residual_scale": 0.0,
    "tensor_data_layout": "Meta AI original pth",
    "use_parallel_residual": False,
}

# Tokens that end a turn in the chat formats of llama models, by their text: a file names one end
# token, while a chat model often stops at another.
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>")

_SAMPLING = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_p": "top_p",
    "general.sampling.top_k": "top_k",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
}


def configuration(file: GGUFFile) -> dict[str, Any]:
    """config.json without `quantization`, which follows from the tensors.

    Raises ModelFailure (foreign) for another architecture, and for every setting that mlx-lm's
    llama would ignore, by name.
    """
    architecture = file.require("general.architecture")
    if architecture != "llama":
        raise _foreign(file, f"it is a {architecture} model; only llama models can be imported")
    _refuse_unknown_settings(file)

    heads = _one_value(file, "llama.attention.head_count")
    hidden = int(file.require("llama.embedding_length"))
    head_dim = int(file.get("llama.attention.key_length", hidden // heads))
    _refuse_other_heads(file, head_dim)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise _foreign(file, "it has no tensor token_embd.weight")
    context = int(file.require("llama.context_length"))
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": _one_value(file, "llama.feed_forward_length"),
        "max_position_embeddings": context,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
        "num_attention_heads": heads,
        "num_hidden_layers": int(file.require("llama.block_count")),
        "num_key_value_heads": _one_value(file, "llama.attention.head_count_kv", heads),
        "rms_norm_eps": _shortest(file.require("llama.attention.layer_norm_rms_epsilon")),
        "rope_scaling": _rope_scaling(file, head_dim, context),
        "rope_theta": _shortest(file.get("llama.rope.freq_base", 10000.0)),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "vocab_size": embedding.shape[0],
    }
    return config | _token_ids(file)


def generation_configuration(file: GGUFFile) -> dict[str, Any]:
    """generation_config.json: the tokens that end a reply, and the sampling the file advises."""
    sampling = {
        name: _shortest(file.get(key)) for key, name in _SAMPLING.items() if key in file.metadata
    }
    return _token_ids(file) | sampling


def _foreign(file: GGUFFile, why: str) -> ModelFailure:
    return ModelFailure(
        "foreign",
        f"{file.path.name} cannot be imported faithfully: {why}.",
        "Take a file of a plain llama model.",
    )


def _refuse_unknown_settings(file: GGUFFile) -> None:
    for key, value in file.metadata.items():
        if not key.startswith("llama.") or (name := key.removeprefix("llama.")) in _UNDERSTOOD:
            continue
        if name not in _HARMLESS or value != _HARMLESS[name]:
            raise _foreign(file, f"it sets {key} = {value!r}")


def _refuse_other_heads(file: GGUFFile, head_dim: int) -> None:
    for key in ("llama.attention.value_length", "llama.rope.dimension_count"):
        if file.get(key, head_dim) != head_dim:
            raise _foreign(file, f"it sets {key} = {file.get(key)} with heads of {head_dim}")
    scale = file.get("llama.attention.scale", 0.0)
    if scale and not math.isclose(scale, head_dim**-0.5, rel_tol=1e-5):
        raise _foreign(file, f"it sets llama.attention.scale = {scale}")


def _one_value(file: GGUFFile, key: str, default: int | None = None) -> int:
    value = file.require(key) if default is None else file.get(key, default)
    if isinstance(value, list):
        if len(set(value)) != 1:
            raise _foreign(file, f"{key} differs from layer to layer")
        value = value[0]
    return int(value)


def _shortest(value: Any) -> Any:
    # GGUF keeps float32: 1e-05 comes back as 9.999999747378752e-06. The shortest decimal that
    # gives the same float32 is what the converter was given.
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _token_ids(file: GGUFFile) -> dict[str, Any]:
    ids: dict[str, Any] = {}
    for name in ("bos", "eos"):
        if (token := file.get(f"tokenizer.ggml.{name}_token_id")) is not None:
            ids[f"{name}_token_id"] = token
    if (padding := file.get("tokenizer.ggml.padding_token_id")) is not None:
        ids["pad_token_id"] = padding
    if ends := end_tokens(file):
        ids["eos_token_id"] = ends[0] if len(ends) == 1 else ends
    return ids


def end_tokens(file: GGUFFile) -> list[int]:
    """Ids that end a reply: those the metadata names, and control tokens known to end a turn."""
    named = [file.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    tokens = file.get("tokenizer.ggml.tokens", [])
    types = file.get("tokenizer.ggml.token_type", [])
    control = 3  # gguf.TokenType.CONTROL
    turn_ends = [
        index
        for index, (text, kind) in enumerate(zip(tokens, types, strict=False))
        if kind == control and text in _TURN_ENDS
    ]
    return list(dict.fromkeys(token for token in [*named, *turn_ends] if token is not None))


def _rope_scaling(file: GGUFFile, head_dim: int, context: int) -> dict[str, Any] | None:
    if ROPE_FACTORS in file.tensors:
        return _llama3_scaling(file, head_dim)
    linear = file.get("llama.rope.scale_linear")
    kind = file.get("llama.rope.scaling.type", "linear" if linear else "none")
    factor = _shortest(file.get("llama.rope.scaling.factor", linear))
    if kind == "none" or (kind == "linear" and factor in (None, 0.0, 1.0)):
        return None
    if not factor:
        raise _foreign(file, f"it sets rope scaling {kind} without a factor")
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor}
    if kind == "yarn":
        if file.get("llama.rope.scaling.attn_factor", 1.0) != 1.0:
            raise _foreign(file, "it sets llama.rope.scaling.attn_factor")
        original = file.get("llama.rope.scaling.original_context_length", context)
        return {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": int(original),
            "beta_fast": _shortest(file.get("llama.rope.scaling.yarn_beta_fast", 32.0)),
            "beta_slow": _shortest(file.get("llama.rope.scaling.yarn_beta_slow", 1.0)),
        }
    raise _foreign(file, f"it sets llama.rope.scaling.type = {kind!r}")


def llama3_factors(head_dim: int, theta: float, factor: float, original_context: int) -> np.ndarray:
    """What Llama 3's scaling divides each rotary frequency by: float64 [head_dim / 2].

    The formula is that of Llama 3.1's release, with its low and high frequency factors 1 and 4.
    """
    wavelengths = 2 * math.pi * theta ** (np.arange(0, head_dim, 2) / head_dim)
    smooth = (original_context / wavelengths - _LLAMA3_LOW) / (_LLAMA3_HIGH - _LLAMA3_LOW)
    smooth = np.clip(smooth, 0.0, 1.0)
    return 1 / ((1 - smooth) / factor + smooth)


def _llama3_scaling(file: GGUFFile, head_dim: int) -> dict[str, Any] | None:
    factors = np.asarray(file.tensors[ROPE_FACTORS].data, dtype=np.float64)
    if np.all(factors == 1.0):
        return None
    theta = float(file.get("llama.rope.freq_base", 10000.0))
    for factor, original in _LLAMA3_SCALINGS:
        expected = llama3_factors(head_dim, theta, factor, original)
        if factors.shape == expected.shape and np.allclose(factors, expected, rtol=1e-4):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": _LLAMA3_LOW,
                "high_freq_factor": _LLAMA3_HIGH,
                "original_max_position_embeddings": original,
            }
    raise _foreign(file, f"the tensor {ROPE_FACTORS} is not the scaling of a Llama 3 model")
