"""Which weights a llama model has, by mlx-lm's names, and their shapes."""

from __future__ import annotations

from typing import Any


def head_dimension(config: dict[str, Any]) -> int:
    """Numbers in one head's vector. Not hidden_size / heads where the configuration names it."""
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def kv_heads(config: dict[str, Any]) -> int:
    """Key-value heads of a layer; as many as query heads where the configuration names none."""
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def expected_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every weight that mlx-lm's llama has under this configuration, with its plain shape.

    Biases are listed where the configuration has them.
    """
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * head_dimension(config)
    keys = kv_heads(config) * head_dimension(config)
    projections = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    if not config.get("tie_word_embeddings", True):  # mlx-lm's default
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        path = f"model.layers.{layer}."
        shapes[f"{path}input_layernorm.weight"] = (hidden,)
        shapes[f"{path}post_attention_layernorm.weight"] = (hidden,)
        for name, shape in projections.items():
            shapes[f"{path}{name}.weight"] = shape
            if config.get("attention_bias" if name.startswith("self_attn") else "mlp_bias"):
                shapes[f"{path}{name}.bias"] = shape[:1]
    return shapes
