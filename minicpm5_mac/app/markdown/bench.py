"""What a streamed token costs at the beginning of a long reply and at its end.

`python -m minicpm5_mac.app.markdown.bench` streams Markdown of several kinds into the real
transcript in a headless app and prints one JSON object: for each kind the CPU time per token of
the first and of the last thousand tokens (the median of their frames, since other programs disturb
some), their ratio, the frame that took most CPU time, and the worst stall (the longest time for
which the event loop answered nothing; it contains what other programs took). A token here is four
characters. The frames are those of a reply at `--rate` tokens a second, ten a second, drawn
without the waiting between them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from statistics import median

from textual.app import App, ComposeResult

from minicpm5_mac import events
from minicpm5_mac.app.transcript import Transcript

_CHARACTERS_A_TOKEN = 4
_WORDS = [
    *("model", "token", "cache", "the", "prompt", "of", "memory", "runs", "推理", "缓存", "a"),
    *("**bold**", "kernel", "with", "`mx.array`", "and", "*long*", "context", "that", "streams"),
    *("[docs](https://example.com/a)", "into", "中文，字符", "rows", "quickly"),
]


def _words(random_words: random.Random, count: int) -> str:
    return " ".join(random_words.choices(_WORDS, k=count))


def _paragraph(r: random.Random) -> Iterator[str]:
    while True:
        yield _words(r, 20) + ". "


def _code(r: random.Random) -> Iterator[str]:
    yield "```python\n"
    number = 0
    while True:
        number += 1
        yield f'def f{number}(x: int) -> str:\n    """Doc {number}."""\n'
        yield '    return "a" * x  # why\n\n'


def _table(r: random.Random) -> Iterator[str]:
    yield "| name | words | number |\n|:--|---|--:|\n"
    while True:
        yield f"| {_words(r, 2)} | {_words(r, 6)} | {r.randint(0, 9999)} |\n"


def _list(r: random.Random) -> Iterator[str]:
    while True:
        yield f"- {_words(r, 14)}\n"
        if r.random() < 0.3:
            yield f"  - {_words(r, 8)}\n"


def _nested(r: random.Random) -> Iterator[str]:
    yield f"1. {_words(r, 5)}\n\n"
    while True:
        yield f"   - {_words(r, 14)}\n"


def _quote(r: random.Random) -> Iterator[str]:
    while True:
        yield f"> {_words(r, 14)}\n"
        if r.random() < 0.1:
            yield ">\n"


def _mixed(r: random.Random) -> Iterator[str]:
    while True:
        yield f"## {_words(r, 4)}\n\n{_words(r, 60)}.\n\n"
        yield "".join(f"- {_words(r, 9)}\n" for _ in range(5)) + "\n"
        yield f"```python\nfor i in range({r.randint(1, 99)}):\n"
        yield f"    print(i)  # {_words(r, 3)}\n```\n\n"
        yield "| a | b |\n|---|---|\n" + "".join(f"| {_words(r, 2)} | x |\n" for _ in range(4))
        yield f"\n> {_words(r, 12)}\n\n"


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "mixed": _mixed,
    "code": _code,
    "table": _table,
    "list": _list,
    "nested list": _nested,
    "quote": _quote,
    "paragraph": _paragraph,
}


def source(kind: str, tokens: int, seed: int = 5) -> str:
    """`tokens` tokens of Markdown of a kind."""
    size = tokens * _CHARACTERS_A_TOKEN
    parts: list[str] = []
    length = 0
    for part in KINDS[kind](random.Random(seed)):
        parts.append(part)
        length += len(part)
        if length >= size:
            break
    return "".join(parts)[:size]


class _BenchApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Transcript()


async def measure(kind: str, tokens: int, rate: float) -> dict[str, float]:
    """Stream one text; CPU seconds include everything the app does for it."""
    text = source(kind, tokens)
    batch = max(1, round(rate / 10))
    app = _BenchApp()
    async with app.run_test(size=(80, 24)) as pilot:
        transcript = app.query_one(Transcript)
        transcript.add_user("1", "go")
        message = transcript.begin_assistant("2")
        await pilot.pause()
        stream = message.begin_answer()
        await pilot.pause()
        stalls: list[float] = []
        watch = asyncio.create_task(_watch_stalls(stalls))
        costs: list[tuple[int, float]] = []
        for first in range(0, tokens, batch):
            last = min(first + batch, tokens)
            began = time.process_time()
            piece = text[first * _CHARACTERS_A_TOKEN : last * _CHARACTERS_A_TOKEN]
            message.show(events.Answer(piece))
            stream.flush()
            drawn = asyncio.Event()
            stream.call_after_refresh(drawn.set)
            await drawn.wait()
            costs.append((last - first, time.process_time() - began))
        message.show(events.ReplyEnd("complete", "stop"))
        await pilot.pause()
        watch.cancel()
    frames = [cpu / tokens_in for tokens_in, cpu in costs]
    span = max(1, min(1000, tokens // 2) // batch)
    head, tail = median(frames[:span]), median(frames[-span:])
    return {
        "tokens": tokens,
        "first_thousand_ms": round(head * 1000, 4),
        "last_thousand_ms": round(tail * 1000, 4),
        "ratio": round(tail / head, 3),
        "worst_frame_cpu_s": round(max(cpu for _, cpu in costs), 4),
        "worst_stall_s": round(max(stalls), 4),
    }


async def _watch_stalls(stalls: list[float]) -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.005)
        stalls.append(time.monotonic() - began - 0.005)


def main() -> None:
    """Measure the kinds that are asked for and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m minicpm5_mac.app.markdown.bench")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=60.0, help="tokens a second")
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    arguments = parser.parse_args()
    kinds = arguments.kind or list(KINDS)
    results = {kind: asyncio.run(measure(kind, arguments.tokens, arguments.rate)) for kind in kinds}
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
