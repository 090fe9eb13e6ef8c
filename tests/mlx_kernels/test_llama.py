"""With this package put in, a Llama model of mlx-lm computes what it computed before."""

from __future__ import annotations

import logging

import mlx.core as mx
import mlx.nn as nn
import pytest
from emulated import Emulated
from llama_models import float32_model, greedy, random_model
from mlx.utils import tree_flatten
from mlx_lm.models import cache as mlx_lm_cache
from mlx_lm.models import qwen2

from mlx_kernels.attention import plain_path
from mlx_kernels.joined_projections import can_join, joined
from mlx_kernels.kernel_choice import KernelChoice, Point
from mlx_kernels.kernel_path import KernelPath
from mlx_kernels.kv_cache import KVCache, QuantizedKVCache
from mlx_kernels.llama import install
from mlx_kernels.open_block import OPEN_ROWS

PROMPT = [(7 * i * i + 3) % 251 for i in range(90)]
ALWAYS = KernelChoice(tuple(Point(rows, 0, 0.0, 1.0, 0.0, True) for rows in (1, 4, 8)))


def difference(a, b):
    return float(mx.abs(a - b).max())


MODELS = {
    "float32": {},
    "4-bit weights": {"quantize": 4},
    "16 heads of 128 on 2": {"num_attention_heads": 16, "head_dim": 128},
    "9 heads on 3, tied": {"num_attention_heads": 9, "num_key_value_heads": 3},
    "no groups": {"num_attention_heads": 2, "num_key_value_heads": 2},
    "heads of 80": {"head_dim": 80},
    "biases": {"attention_bias": True, "mlp_bias": True, "quantize": 8},
    "traditional": {"rope_traditional": True},
    "scaled rotation": {
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
        "tie_word_embeddings": False,
    },
}


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_prefill_decode_and_greedy_ids_are_those_of_mlx_lm(changes):
    model = random_model(**changes)
    prompt = PROMPT * 4
    expected, logits = greedy(model, prompt, 12)
    installed = install(model)
    assert (installed.layers, installed.of, installed.notes) == (2, 2, ())
    ids, ours = greedy(model, prompt, 12)
    assert ids == expected
    assert difference(ours, logits) < 2e-5 * float(mx.abs(logits).max())


def test_greedy_ids_of_the_tiny_model_over_200_tokens(tiny_model):
    model = float32_model(tiny_model)
    expected, logits = greedy(model, PROMPT, 200)
    install(model)
    ids, ours = greedy(model, PROMPT, 200)
    assert ids == expected
    assert difference(ours, logits) < 1e-3


@pytest.mark.usefixtures("compiler_here")
def test_greedy_ids_of_the_tiny_model_over_32_tokens_with_the_kernels_emulated(tiny_model):
    model = float32_model(tiny_model)
    prompt = PROMPT + PROMPT[:40]  # more than one part of the sequence
    expected, logits = greedy(model, prompt, 32)
    launch = Emulated()
    install(model, path=KernelPath(ALWAYS, cores=8, launch=launch))
    ids, ours = greedy(model, prompt, 32)
    assert ids == expected
    assert difference(ours, logits) < 1e-3
    ran = [name for name, _ in launch.reports]
    layers, steps = len(model.layers), 31  # more than an open block has room for
    assert steps > OPEN_ROWS
    assert {name: ran.count(name) for name in set(ran)} == {
        name: layers * steps for name in ("write_plain", "attend_plain", "join_parts")
    }


@pytest.mark.usefixtures("compiler_here")
@pytest.mark.parametrize("kv_bits", [8, 4])
def test_a_quantized_cache_with_the_kernels_emulated_is_as_on_the_plain_path(kv_bits):
    def last_logits(path):
        model = random_model(num_attention_heads=16)
        install(model, kv_bits=kv_bits, path=path)
        cache = mlx_lm_cache.make_prompt_cache(model)
        chunks = (PROMPT, [5, 9, 11], [7], [1, 2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5], [4])
        outs = [model(mx.array([chunk]), cache=cache) for chunk in chunks]
        return mx.concatenate([out[:, -1] for out in outs])

    launch = Emulated()
    ours, plain = last_logits(KernelPath(ALWAYS, 8, launch)), last_logits(plain_path)
    # A code that rounding decides otherwise moves the logits by far less than one bit of the cache.
    assert difference(ours, plain) < 2e-2 * float(mx.abs(plain).max())
    assert {name for name, _ in launch.reports} == {"write_affine", "attend_affine"}


@pytest.mark.usefixtures("compiler_here")
def test_a_rotation_that_no_kernel_does_is_mlx_lms_and_attention_is_the_kernels():
    scaling = {"rope_type": "llama3", "factor": 8.0}
    model = random_model(rope_scaling=scaling)
    expected, _ = greedy(model, PROMPT, 3)
    launch = Emulated()
    install(model, path=KernelPath(ALWAYS, 8, launch))
    assert greedy(model, PROMPT, 3)[0] == expected
    assert {name for name, _ in launch.reports} == {"attend_plain"}


@pytest.mark.parametrize("kv_bits", [8, 4])
def test_with_a_quantized_cache_logits_are_those_of_mlx_lms_quantized_cache(kv_bits):
    chunks = (PROMPT, PROMPT[:30], [7], [9])

    def distributions(model, cache):
        outs = [model(mx.array([chunk]), cache=cache)[:, -1] for chunk in chunks]
        return nn.log_softmax(mx.concatenate(outs))

    model = random_model(num_attention_heads=16)
    exact = distributions(model, mlx_lm_cache.make_prompt_cache(model))
    theirs = [mlx_lm_cache.QuantizedKVCache(64, kv_bits) for _ in model.layers]
    expected = distributions(model, theirs)
    installed = install(model, kv_bits=kv_bits)
    assert (installed.kv_bits, installed.group_size) == (kv_bits, 64)
    cache = mlx_lm_cache.make_prompt_cache(model)
    assert all(isinstance(layer, QuantizedKVCache) for layer in cache)
    ours = distributions(model, cache)

    def divergence(q):
        return float((mx.exp(exact) * (exact - q)).sum(axis=-1).mean())

    assert divergence(ours) > 0
    assert divergence(ours) == pytest.approx(divergence(expected), rel=0.05)


def test_batches_are_those_of_mlx_lm():
    model = random_model()
    tokens = mx.array([PROMPT[:9], PROMPT[9:18]])
    expected = model(tokens, cache=mlx_lm_cache.make_prompt_cache(model))
    padded = mlx_lm_cache.BatchKVCache([0, 2])
    before = model(tokens, cache=[padded, mlx_lm_cache.BatchKVCache([0, 2])])
    install(model)
    assert difference(model(tokens, cache=model.make_cache()), expected) < 1e-5
    assert difference(model(tokens), expected) < 1e-5
    after = model(tokens, cache=[mlx_lm_cache.BatchKVCache([0, 2]) for _ in range(2)])
    assert difference(after[:, 2:], before[:, 2:]) < 1e-5


@pytest.mark.parametrize("changes", [{}, {"quantize": 4}], ids=["float32", "4 bits"])
def test_joining_leaves_no_second_copy_of_a_weight(changes):
    model = random_model(hidden_size=512, intermediate_size=1024, **changes)
    before = sum(x.nbytes for _, x in tree_flatten(model.parameters()))
    active = mx.get_active_memory()
    install(model)
    assert sum(x.nbytes for _, x in tree_flatten(model.parameters())) == before
    assert mx.get_active_memory() < active + 0.02 * before
    names = {name for name, _ in tree_flatten(model.parameters())}
    assert any("qkv_proj" in name for name in names)
    assert not any("q_proj" in name or "gate_proj" in name for name in names)


def test_joined_outputs_are_equal_bit_for_bit():
    mx.random.seed(2)
    x = mx.random.normal((2, 3, 128))
    projections = [nn.QuantizedLinear(128, n, bias=n == 64, bits=4) for n in (64, 32, 32)]
    assert not can_join(projections)  # one has a bias
    projections = [nn.QuantizedLinear(128, n, bias=False, bits=4) for n in (64, 32, 32)]
    assert can_join(projections)
    expected = mx.concatenate([p(x) for p in projections], axis=-1)
    mx.eval(expected)
    assert mx.array_equal(joined(projections)(x), expected)


def test_a_mixed_quantization_is_not_joined_and_computes_the_same():
    model = random_model()
    for layer in model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        attention.v_proj = nn.QuantizedLinear.from_linear(attention.v_proj, 64, 8)
        mlp.up_proj = nn.QuantizedLinear.from_linear(mlp.up_proj, 64, 8)
    expected, _ = greedy(model, PROMPT, 4)
    install(model)
    assert greedy(model, PROMPT, 4)[0] == expected


def test_sliding_layers_stay_mlx_lms_with_one_line_in_the_log(caplog):
    kinds = ["full_attention", "sliding_attention"]
    model = random_model(layer_types=kinds, sliding_window=16)
    expected, _ = greedy(model, PROMPT, 6)
    with caplog.at_level(logging.WARNING):
        installed = install(model)
    assert (installed.layers, installed.of) == (1, 2)
    assert [type(c) for c in model.make_cache()] == [KVCache, mlx_lm_cache.RotatingKVCache]
    assert len(caplog.records) == 1
    assert "1 layers have a sliding window" in caplog.text
    assert greedy(model, PROMPT, 6)[0] == expected


def test_what_is_not_served_stays_as_it_is_and_says_so_once(caplog):
    args = qwen2.ModelArgs("qwen2", 128, 1, 192, 2, 1e-5, 257, 2, 128)
    other = qwen2.Model(args)
    attention = other.layers[0].self_attn
    with caplog.at_level(logging.WARNING):
        assert install(other).layers == 0
        assert other.layers[0].self_attn is attention
        odd = random_model(head_dim=80)
        assert install(odd, kv_bits=4).kv_bits == 16
        again = install(odd)
    assert again.layers == 0
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert "qwen2.Model is not mlx-lm's Llama model" in messages[0]
    assert "the cache stays unquantized" in messages[1]
    assert "another attention than mlx-lm's already" in messages[2]


def test_other_bits_are_refused_before_anything_is_changed():
    model = random_model()
    attention = model.layers[0].self_attn
    with pytest.raises(ValueError, match="kv_bits is 16, 8 or 4, not 6"):
        install(model, kv_bits=6)
    assert model.layers[0].self_attn is attention
