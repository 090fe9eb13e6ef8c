"""Prefill in chunks sized by time: a cancel waits for one, a progress bar moves by them."""

from __future__ import annotations

import itertools
import time

import mlx.core as mx
import pytest

from minicpm5_mac.engine.kv_state import KVState
from minicpm5_mac.engine.prefill import CHUNK_SECONDS, LARGEST_CHUNK, Prefill


class Machine:
    """A model that takes `seconds` a token and keeps nothing: it stands for a machine's speed."""

    def __init__(self, seconds: float, clock: list[float]) -> None:
        self.seconds = seconds
        self.clock = clock

    def __call__(self, tokens: mx.array, cache) -> None:
        self.clock[0] += tokens.shape[1] * self.seconds


def chunks(seconds: float, tokens: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    prefill = Prefill(Machine(seconds, clock))
    done = [0, *prefill.feed(KVState(list), list(range(tokens)))]
    assert done[-1] == tokens
    return [b - a for a, b in itertools.pairwise(done)]


@pytest.mark.parametrize("rate", [10, 50, 400, 3000, 100_000])
def test_chunks_settle_at_less_than_a_second(rate, monkeypatch):
    sizes = chunks(1 / rate, 40 * rate, monkeypatch)
    settled = sizes[10:-1] or sizes[-2:-1]
    assert all(size / rate <= 1.0 or size <= 8 for size in settled)
    assert all(size <= LARGEST_CHUNK for size in sizes)
    # and they are not needlessly small
    assert all(size >= min(0.5 * CHUNK_SECONDS * rate, LARGEST_CHUNK) for size in settled)


def test_the_ids_are_kept_in_step_with_the_cache(monkeypatch):
    clock = [0.0]
    prefill = Prefill(Machine(0.001, clock))
    kv = KVState(list)
    for done in prefill.feed(kv, list(range(500))):
        assert kv.ids == list(range(done))
        if done > 100:
            break
    assert len(kv.ids) < 500
