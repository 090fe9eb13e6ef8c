"""The caches hold what mlx-lm's hold, through growth, trimming, saving and loading."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx.utils import tree_flatten
from mlx_lm.models import cache as mlx_lm_cache

from mlx_kernels.kv_cache import STEP, KVCache, QuantizedKVCache, load_prompt_cache

HEADS, D = 2, 64
KINDS = {
    "plain": (KVCache, mlx_lm_cache.KVCache),
    "8 bits": (lambda: QuantizedKVCache(64, 8), lambda: mlx_lm_cache.QuantizedKVCache(64, 8)),
    "4 bits": (lambda: QuantizedKVCache(32, 4), lambda: mlx_lm_cache.QuantizedKVCache(32, 4)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def new_rows(n, seed=0, batch=1, dtype=mx.float32):
    key = mx.random.key(seed)
    rows = mx.random.normal((2, batch, HEADS, n, D), key=key).astype(dtype)
    return rows[0], rows[1]


def same(a, b):
    """Equal arrays in the same places of two nested values."""
    one, two = tree_flatten(a), tree_flatten(b)
    assert [path for path, _ in one] == [path for path, _ in two]
    return all(
        x.dtype == y.dtype and mx.array_equal(x, y) if isinstance(x, mx.array) else x == y
        for (_, x), (_, y) in zip(one, two, strict=True)
    )


def listed(value):
    return [listed(v) for v in value] if isinstance(value, tuple | list) else value


@kinds
@settings(max_examples=15, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.sampled_from([1, 2, 8, 255, 256, 257, 300])),
            st.tuples(st.just("trim"), st.sampled_from([1, 7, 256, 10_000])),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_writes_and_trims_leave_what_they_leave_in_mlx_lms_cache(kind, steps):
    make_ours, make_theirs = KINDS[kind]
    ours, theirs = make_ours(), make_theirs()
    for number, (step, n) in enumerate(steps):
        if step == "trim":
            assert ours.trim(n) == theirs.trim(n)
        else:
            rows = new_rows(n, number)
            got, expected = ours.update_and_fetch(*rows), theirs.update_and_fetch(*rows)
            assert same(listed(got), listed(expected))
        assert ours.offset == theirs.offset == ours.size()
        assert ours.empty() == theirs.empty()
        assert ours.make_mask(1) is None
        assert ours.make_mask(3) == "causal"
        for window in (None, 4):
            asked = {"return_array": True, "window_size": window}
            assert mx.array_equal(ours.make_mask(3, **asked), theirs.make_mask(3, **asked))


@kinds
def test_the_buffer_grows_in_steps_and_is_written_in_place_between_them(kind):
    cache = KINDS[kind][0]()
    cache.update_and_fetch(*new_rows(1))
    at_first = cache.nbytes
    for seed in range(4):
        cache.update_and_fetch(*new_rows(60, seed))
    assert cache.nbytes == at_first
    cache.update_and_fetch(*new_rows(STEP))
    assert cache.nbytes == 2 * at_first


@kinds
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16], ids=str)
def test_a_cache_takes_the_dtype_of_its_rows(kind, dtype):
    cache = KINDS[kind][0]()
    cache.update_and_fetch(*new_rows(3, dtype=dtype))
    keys, values = cache.rows()
    assert keys.dtype == values.dtype == dtype
    assert keys.shape == (1, HEADS, 3, D)


def test_a_quantized_cache_takes_the_bytes_that_its_bits_say():
    for bits, group, row in ((4, 64, 32 + 4), (8, 64, 64 + 4), (4, 32, 32 + 8)):
        cache = QuantizedKVCache(group, bits)
        cache.update_and_fetch(*new_rows(STEP, dtype=mx.float16))
        assert cache.nbytes == 2 * HEADS * STEP * row


@kinds
def test_saved_and_loaded_a_cache_is_the_same_and_goes_on_the_same(kind, tmp_path):
    make_ours, make_theirs = KINDS[kind]
    ours, theirs = make_ours(), make_theirs()
    for cache in (ours, theirs):
        cache.update_and_fetch(*new_rows(300))
        cache.trim(5)
    file = str(tmp_path / "cache.safetensors")
    mlx_lm_cache.save_prompt_cache(file, [ours, make_ours()])
    for read, kind_of in (
        (load_prompt_cache(file), type(ours)),
        (mlx_lm_cache.load_prompt_cache(file), type(theirs)),
    ):
        first, empty = read
        assert type(first) is kind_of
        assert empty.empty()
        assert first.offset == ours.offset
        assert same(listed(first.keys_and_values()), listed(ours.keys_and_values()))
        after = first.update_and_fetch(*new_rows(2, 9))
        twin = type(ours).from_state(ours.state)
        assert same(listed(after), listed(twin.update_and_fetch(*new_rows(2, 9))))


@kinds
def test_a_file_of_mlx_lms_caches_becomes_ours(kind, tmp_path):
    make_ours, make_theirs = KINDS[kind]
    theirs = make_theirs()
    theirs.update_and_fetch(*new_rows(20))
    file = str(tmp_path / "cache.safetensors")
    mlx_lm_cache.save_prompt_cache(file, [theirs, mlx_lm_cache.RotatingKVCache(8)])
    read, sliding = load_prompt_cache(file)
    assert type(read) is type(make_ours())
    assert same(listed(read.keys_and_values()), listed(theirs.keys_and_values()))
    assert isinstance(sliding, mlx_lm_cache.RotatingKVCache)


def test_caches_of_a_batch_merge_as_mlx_lms_do():
    lengths = (3, 0, 7)
    ours, theirs = [KVCache() for _ in lengths], [mlx_lm_cache.KVCache() for _ in lengths]
    for caches in (ours, theirs):
        for seed, (cache, n) in enumerate(zip(caches, lengths, strict=True)):
            if n:
                cache.update_and_fetch(*new_rows(n, seed))
    merged, expected = KVCache.merge(ours), mlx_lm_cache.KVCache.merge(theirs)
    assert same(listed(merged.state), listed(expected.state))


@pytest.mark.parametrize(("group", "bits"), [(64, 3), (64, 16), (16, 4), (128, 8)])
def test_bits_and_groups_that_no_kernel_reads_are_refused(group, bits):
    with pytest.raises(ValueError, match=f"not {bits} bits in groups of {group}"):
        QuantizedKVCache(group, bits)


def test_heads_that_do_not_divide_into_groups_are_refused():
    rows = mx.zeros((1, HEADS, 1, 96))
    with pytest.raises(ValueError, match="heads of 96 values"):
        QuantizedKVCache(64, 8).update_and_fetch(rows, rows)
