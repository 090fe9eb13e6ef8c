"""Whatever is done to a cache, its rows are those of a plain list: in buffers, open, or both."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from emulated import Emulated
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models import cache as mlx_lm_cache

from mlx_kernels.kv_cache import KVCache, QuantizedKVCache, load_prompt_cache
from mlx_kernels.new_rows import write_new_rows
from mlx_kernels.open_block import OPEN_ROWS
from mlx_kernels.step_inputs import arrays_of

pytestmark = pytest.mark.usefixtures("compiler_here")

HEADS, KV_HEADS, D = 2, 1, 64
KINDS = {
    "plain": KVCache,
    "8 bits": lambda: QuantizedKVCache(64, 8),
    "4 bits": lambda: QuantizedKVCache(32, 4),
}
kinds = pytest.mark.parametrize("kind", KINDS)
# Rows that a launch leaves unwritten hold this, so that one that is read is seen.
LAUNCH = Emulated(garbage=77)


def decode(cache, by_head):
    """Rows of a step as the kernel writes them; a scale of 0 rotates nothing."""
    write_new_rows(
        by_head,
        cache,
        heads=HEADS,
        kv_heads=KV_HEADS,
        rope=nn.RoPE(D, scale=0.0),
        launch=LAUNCH,
    )


def tokens(n, seed, batch=1):
    vectors = HEADS + 2 * KV_HEADS
    return mx.random.normal((batch, n, vectors, D), key=mx.random.key(seed))


def keys_and_values(by_head):
    keys, values = mx.split(by_head[:, :, HEADS:].swapaxes(1, 2), 2, axis=1)
    return mx.stack([keys, values])


def listed(keys, values):
    """Rows as a list: of each, its part of every array that holds keys and values."""
    arrays = [np.array(a) for a in (*arrays_of(keys), *arrays_of(values))]
    return [[a[..., i, :] for a in arrays] for i in range(keys.shape[2])]


def listed_parts(cache):
    """As listed, of what a kernel reads: rows in buffers, and then those of the open block."""
    keys, values, block = cache.rows_and_block()
    rows = listed(keys, values)
    if block is None:
        return rows
    assert all(a.shape[-2] == OPEN_ROWS for a in block.arrays)
    first, *affine = block.used()
    of = [[first[i], *(a[i] for a in affine[0])] if affine else [first[i]] for i in (0, 1)]
    arrays = [np.array(a) for a in (*of[0], *of[1])]
    return rows + [[a[..., i, :] for a in arrays] for i in range(block.rows)]


def same(rows, expected):
    return len(rows) == len(expected) and all(
        np.array_equal(a, b)
        for row, other in zip(rows, expected, strict=True)
        for a, b in zip(row, other, strict=True)
    )


STEPS = st.one_of(
    st.tuples(st.just("decode"), st.sampled_from([1, 1, 1, 2, 4, 8, OPEN_ROWS])),
    st.tuples(st.just("prefill"), st.sampled_from([1, 5, 250])),
    st.tuples(st.just("trim"), st.sampled_from([0, 1, 3, 7, 20, 10_000])),
    st.tuples(st.just("read"), st.just(0)),
    st.tuples(st.just("save and load"), st.just(0)),
)


@kinds
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
def test_any_steps_leave_the_rows_that_they_leave_in_a_list(kind, steps, tmp_path_factory):
    make = KINDS[kind]
    cache, rows = make(), []
    for seed, (step, n) in enumerate(steps):
        if step == "decode":
            by_head, alone = tokens(n, seed), make()
            decode(alone, by_head)
            decode(cache, by_head)
            rows += listed(*alone.rows())
            assert same(listed_parts(cache), rows)
        elif step == "prefill":
            new, alone = keys_and_values(tokens(n, seed)), make()
            alone.append(new)
            cache.append(new)
            rows += listed(*alone.rows())
        elif step == "trim":
            assert cache.trim(n) == min(n, len(rows))
            del rows[len(rows) - min(n, len(rows)) :]
        elif step == "save and load":
            file = str(tmp_path_factory.mktemp("cache") / "cache.safetensors")
            mlx_lm_cache.save_prompt_cache(file, [cache])
            (cache,) = load_prompt_cache(file)
        assert cache.offset == cache.size() == len(rows)
        if step in ("read", "save and load") and rows:
            assert same(listed(*cache.rows()), rows)
    if rows:
        assert same(listed_parts(cache), rows)
        assert same(listed(*cache.rows()), rows)


@kinds
@pytest.mark.parametrize("n", [0, 2, 3, 5])
def test_trimming_within_the_block_writes_nothing_and_beyond_it_lets_it_go(kind, n):
    cache = KINDS[kind]()
    cache.append(keys_and_values(tokens(7, 0)))
    buffers = cache.nbytes
    decode(cache, tokens(3, 1))
    block = cache.rows_and_block()[2]
    assert cache.nbytes == buffers + block.nbytes
    assert cache.trim(n) == n
    assert cache.offset == 10 - n
    after = cache.rows_and_block()[2]
    assert (after is None) == (n >= 3)
    if after is not None:
        assert after.arrays is block.arrays
        assert after.rows == 3 - n
    cache.close()
    assert cache.nbytes == buffers


@kinds
def test_whole_buffers_are_looked_at_when_the_block_is_closed(kind):
    looks = {
        "keys": lambda cache: cache.keys,
        "values": lambda cache: cache.values,
        "state": lambda cache: cache.state,
        "rows": lambda cache: cache.rows(),
        "fetch": lambda cache: cache.keys_and_values(),
        "append": lambda cache: cache.append(keys_and_values(tokens(1, 2))),
        "update": lambda cache: cache.update_and_fetch(*keys_and_values(tokens(1, 2))),
    }
    for look in looks.values():
        cache = KINDS[kind]()
        cache.append(keys_and_values(tokens(7, 0)))
        decode(cache, tokens(3, 1))
        expected = listed_parts(cache)
        look(cache)
        assert cache.rows_and_block()[2] is None
        assert same(listed(*cache.rows())[:10], expected)


@kinds
def test_closing_writes_in_place_and_all_that_is_looked_at_is_a_view(kind):
    cache = KINDS[kind]()
    cache.append(mx.zeros((2, 1, KV_HEADS, 100_000, D)))
    decode(cache, tokens(4, 1))
    mx.eval([arrays_of(rows) for rows in cache.rows()])
    decode(cache, tokens(4, 2))
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    mx.eval([arrays_of(rows) for rows in cache.rows_and_block()[:2]])
    cache.close()
    mx.eval([arrays_of(rows) for rows in cache.rows()])
    mx.eval(cache.keys, cache.values, cache.keys_and_values(), cache.state[:2])
    assert cache.offset == 100_008
    assert mx.get_peak_memory() < before + cache.nbytes / 100


@kinds
def test_a_first_step_without_a_prefill_is_closed_at_once_for_attention(kind):
    cache = KINDS[kind]()
    decode(cache, tokens(1, 0))
    assert cache.trim(1) == 1
    assert not cache.empty()
    decode(cache, tokens(2, 0))
    keys, _, block = cache.rows_and_block()
    assert block is None
    assert keys.shape[2] == cache.offset == 2
    decode(cache, tokens(2, 1))
    assert cache.rows_and_block()[2].rows == 2
    assert cache.trim(9) == 4
    assert not cache.empty()
    assert cache.state[2] == 0


def test_caches_with_open_blocks_merge_as_closed_ones_do():
    caches, closed = [KVCache() for _ in range(2)], [KVCache() for _ in range(2)]
    for seed, (cache, twin) in enumerate(zip(caches, closed, strict=True)):
        for one in (cache, twin):
            one.append(keys_and_values(tokens(4 + seed, seed)))
            decode(one, tokens(2, seed))
        twin.close()
    merged, expected = KVCache.merge(caches).state, KVCache.merge(closed).state
    assert all(mx.array_equal(a, b) for a, b in zip(merged[:2], expected[:2], strict=True))
