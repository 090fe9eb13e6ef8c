"""Counts, times and sizes of attention on MLX, and what it does to a model's output.

`python -m mlx_kernels traffic|bench|memory|peak|fidelity`. The shape is given by flags; without
them it is that of a model with 42 layers, 16 query and 2 KV heads of 128, and 1.4 GB of 4-bit
weights.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

NO_METAL = 3  # exit code of what needs a Metal GPU


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if "heads" in options and options.heads % options.kv_heads:
        parser.error(f"{options.heads} query heads are no multiple of {options.kv_heads} KV heads")
    return options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mlx_kernels", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, run: Any, help_text: str, shape: bool = True) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=help_text, description=help_text)
        one.set_defaults(run=run)
        one.add_argument("--json", action="store_true", help="print JSON")
        if not shape:
            return one
        one.add_argument("--heads", type=_positive, default=16, help="query heads (16)")
        one.add_argument("--kv-heads", type=_positive, default=2, help="KV heads (2)")
        one.add_argument("--group-size", type=int, choices=(32, 64), default=64)
        return one

    traffic = command("traffic", _traffic, "Count the bytes that a decode step loads and stores.")
    traffic.add_argument("--context", type=_positive, default=1024, help="keys (1024)")
    traffic.add_argument("--kv-bits", type=int, choices=(16, 8, 4), default=16)
    traffic.add_argument("--rows", type=int, choices=range(1, 9), default=1, help="query tokens")
    bench = command("bench", _bench, "Time a decode step's attention on this Mac's GPU.")
    bench.add_argument("--rows", type=int, choices=range(1, 9), nargs="+", default=[1, 4])
    for one in (traffic, bench):
        one.add_argument("--head-dim", type=int, choices=(64, 128), default=128)
        one.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), default="float16")
    memory = command("memory", _memory, "Compute what a KV cache takes and a step's least time.")
    memory.add_argument("--layers", type=_positive, default=42, help="(42)")
    memory.add_argument("--head-dim", type=_head_dim, default=128, help="(128)")
    memory.add_argument(
        "--weight-bytes", type=_positive, default=1_416_035_216, help="(1416035216)"
    )
    peak = command("peak", _peak, "Measure the peak memory of a prefill, ours and mlx-lm's.")
    peak.add_argument("--prompt", type=_positive, default=8192, help="tokens (8192)")
    peak.add_argument(
        "--computed",
        type=_positive,
        help="tokens at the end that go through the model, over random rows for the rest (all)",
    )
    peak.add_argument("--layers", type=_positive, default=2, help="(2)")
    peak.add_argument("--head-dim", type=_head_dim, default=128, help="(128)")
    peak.add_argument("--hidden", type=_positive, default=256, help="hidden size (256)")
    fidelity = command(
        "fidelity", _fidelity, "Compare a model's greedy ids and logits with mlx-lm's.", shape=False
    )
    fidelity.add_argument("folder", type=Path, help="a Llama model in MLX format")
    fidelity.add_argument("--tokens", type=_positive, default=200, help="generated (200)")
    fidelity.add_argument("--no-kernels", action="store_true", help="plain MLX on Metal too")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _head_dim(text: str) -> int:
    number = int(text)
    if number < 64 or number % 64:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of 64")
    return number


def _shape(options: argparse.Namespace, kv_bits: int) -> Any:
    from mlx_kernels.step_inputs import StepShape

    group_size = 0 if kv_bits == 16 else options.group_size
    heads = (options.heads, options.kv_heads, options.head_dim)
    return StepShape(*heads, options.dtype, kv_bits, group_size)


def _traffic(options: argparse.Namespace) -> int:
    from mlx_kernels.emulator.faults import CompilerMissing
    from mlx_kernels.traffic_report import COUNTED, WRITE_COUNTED, step_traffic, write_traffic

    if options.rows > options.context:
        print(f"{options.rows} query tokens need as many keys", file=sys.stderr)
        return 2
    try:
        shape = _shape(options, options.kv_bits)
        found = step_traffic(shape, context=options.context, rows=options.rows)
        writes = write_traffic(shape, rows=options.rows)
    except CompilerMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    asked = {"context": options.context, "kv_bits": options.kv_bits, "rows": options.rows}
    if options.json:
        steps = {"counted": COUNTED, "steps": [asdict(step) for step in found]}
        of_writes = {"writes_counted": WRITE_COUNTED, "writes": [asdict(one) for one in writes]}
        print(json.dumps({**asked, **steps, **of_writes}, indent=1))
        return 0
    print(f"{options.rows} query tokens over {options.context} keys, {options.kv_bits}-bit cache")
    print(f"Counted: {COUNTED}.")
    _table(
        ("", "launches", "K and V read", "x floor", "written", "error", ""),
        [
            (
                step.name,
                step.launches,
                f"{step.kv_read:,}",
                f"{step.ratio:.2f}",
                f"{step.written:,}",
                "" if step.largest_error is None else f"{step.largest_error:.1e}",
                step.note,
            )
            for step in found
        ],
    )
    print(
        f"Before attention: rotation, quantization, write into the cache. Counted: {WRITE_COUNTED}."
    )
    _table(
        ("", "launches", "read", "written", ""),
        [
            (
                one.name,
                f"{one.launches:.2f}",
                f"{one.read:,.0f}",
                f"{one.written:,.0f}",
                one.note,
            )
            for one in writes
        ],
    )
    return 0


def _bench(options: argparse.Namespace) -> int:
    from mlx_kernels import gpu

    if not gpu.has_metal():
        told = "There is no Metal GPU here: bench times kernels on a Mac. Counts: traffic."
        print(json.dumps({"error": told}) if options.json else told, file=sys.stderr)
        return NO_METAL
    from mlx_kernels.benchmark import copy_bandwidth, step_times

    bandwidth, cores = copy_bandwidth(), gpu.core_count()
    shapes = [_shape(options, bits) for bits in (16, 8, 4)]
    machine = {"chip": gpu.chip_name(), "gpu_cores": cores, "copy_gb_per_s": bandwidth / 1e9}
    found = list(step_times(shapes, rows=options.rows, cores=cores, bandwidth=bandwidth))
    if options.json:
        print(json.dumps({**machine, "steps": [asdict(step) for step in found]}, indent=1))
        return 0
    print(f"{machine['chip']}, {cores} GPU cores, a copy moves {bandwidth / 1e9:.0f} GB/s")
    _table(
        ("context", "rows", "bits", "ours ms", "other ms", "of bandwidth", ""),
        [
            (
                step.context,
                step.rows,
                step.kv_bits,
                f"{step.kernel_ms:.3f}",
                f"{step.other_ms:.3f}",
                f"{step.bandwidth_share:.0%}",
                step.other,
            )
            for step in found
        ],
    )
    return 0


def _memory(options: argparse.Namespace) -> int:
    from mlx_kernels.memory_table import ModelShape, memory_rows

    shape = ModelShape(
        options.layers,
        options.kv_heads,
        options.head_dim,
        options.weight_bytes,
        options.group_size,
    )
    told = "computed from the shape and Apple's published bandwidths, not measured"
    rows = memory_rows(shape)
    if options.json:
        table = [asdict(row) for row in rows]
        print(json.dumps({"computed": told, "shape": asdict(shape), "rows": table}, indent=1))
        return 0
    print(f"KV cache and least time of a decode step: {told}.")
    print(f"Weights {shape.weight_bytes / 1e9:.2f} GB, {shape.layers} layers.")
    chips = list(rows[0].floor_ms)
    _table(
        ("", *(f"{row.context:,} at {row.kv_bits}" for row in rows)),
        [
            ("KV cache GB", *(f"{row.kv_bytes / 1e9:.2f}" for row in rows)),
            *(
                (f"{chip} ms a token", *(f"{row.floor_ms[chip]:.1f}" for row in rows))
                for chip in chips
            ),
        ],
    )
    return 0


def _peak(options: argparse.Namespace) -> int:
    from mlx_kernels.peak_memory import peak_memories

    found = list(
        peak_memories(
            prompt=options.prompt,
            computed=options.computed or options.prompt,
            layers=options.layers,
            heads=options.heads,
            kv_heads=options.kv_heads,
            head_dim=options.head_dim,
            hidden=options.hidden,
        )
    )
    if options.json:
        asked = {
            "prompt": options.prompt,
            "computed": options.computed or options.prompt,
            "layers": options.layers,
        }
        print(json.dumps({**asked, "prefills": [asdict(one) for one in found]}, indent=1))
        return 0
    print(f"Prefill of {options.prompt} tokens, {options.layers} layers, measured here, no weights")
    _table(
        ("", "bits", "cache dtype", "cache MB", "peak MB"),
        [
            (
                one.name,
                one.kv_bits,
                one.cache_dtype,
                f"{one.cache_bytes / 1e6:.1f}",
                f"{one.peak_bytes / 1e6:.1f}",
            )
            for one in found
        ],
    )
    return 0


def _fidelity(options: argparse.Namespace) -> int:
    from mlx_lm.utils import load_tokenizer

    from mlx_kernels.fidelity import PROMPT, fidelity

    if not (options.folder / "config.json").is_file():
        print(f"{options.folder} is no model's folder: it has no config.json", file=sys.stderr)
        return 2
    prompt = load_tokenizer(options.folder).encode(PROMPT)
    found = fidelity(options.folder, prompt, options.tokens, kernels=not options.no_kernels)
    if options.json:
        print(json.dumps(asdict(found), indent=1))
        return 0
    print(
        f"{found.equal_ids} of {found.tokens} greedy ids as mlx-lm's, after {found.prompt} tokens; "
        f"logits differ by {found.largest_difference:.1e} at most, of {found.largest_logit:.0f} "
        f"({found.dtype})"
    )
    print("KL divergence of the next token from an unquantized cache's, nats a token:")
    _table(
        ("bits", "group", "ours", "mlx-lm"),
        [
            (one.kv_bits, one.group_size, f"{one.ours:.2e}", f"{one.mlx_lm:.2e}")
            for one in found.divergences
        ],
    )
    return 0


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> None:
    lines = [[str(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    raise SystemExit(main())
