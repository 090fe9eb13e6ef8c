"""`minicpm5-mac bench`: our engine beside mlx-lm's on this machine, with any model."""

from __future__ import annotations

import argparse
import sys

from minicpm5_mac.cli.model_arguments import add_model_arguments


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bench",
        help="measure this machine: our engine beside mlx-lm's, in one run",
        description="Both engines write the same greedy reply in turns. Each has the weights for "
        "itself, so twice the model's memory is needed.",
    )
    parser.set_defaults(run=run)
    add_model_arguments(parser)
    parser.add_argument("--prompt-tokens", type=int, default=256, metavar="N")
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="tokens to write")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """Load in this process, run all rounds, print."""
    from minicpm5_mac.model import openblas

    openblas.preload()  # before anything imports MLX
    from pathlib import Path

    import msgspec

    from minicpm5_mac import events
    from minicpm5_mac.cli.download_line import DownloadLine
    from minicpm5_mac.cli.model_arguments import engine_options
    from minicpm5_mac.configuration.reading import load_configuration
    from minicpm5_mac.engine.benchmark import compare
    from minicpm5_mac.engine.options import EngineOptions
    from minicpm5_mac.engine.startup import start_model
    from minicpm5_mac.failure import Failure
    from minicpm5_mac.model.check import check_model
    from minicpm5_mac.model.fit import memory_limit
    from minicpm5_mac.model.loading import LoadedModel, load

    configuration = load_configuration()
    options = engine_options(arguments.model or configuration.model, arguments, configuration)
    line = DownloadLine(sys.stderr)

    def started(options: EngineOptions) -> tuple[LoadedModel, events.ModelReady]:
        ready = None
        starting = start_model(options)
        while True:
            try:
                event = next(starting)
            except StopIteration as stop:
                line.finish()
                assert ready is not None
                return stop.value[0], ready
            if isinstance(event, events.DownloadProgress):
                line.show(event)
            elif isinstance(event, events.ModelFailed):
                raise Failure(event.text, event.advice, exit_code=3)
            elif isinstance(event, events.ModelReady):
                ready = event

    loaded, ready = started(options)
    # mlx-lm gets weights of its own: ours are joined, and its attention is to be its own.
    folder = Path(ready.path)
    peer = load(folder, check_model(folder).config, available_memory=memory_limit(), as_mlx_lm=True)
    result = compare(
        loaded,
        peer,
        folder,
        name=ready.name,
        prompt_tokens=arguments.prompt_tokens,
        tokens=arguments.tokens,
        rounds=arguments.rounds,
    )
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(result)).decode())
        return 0
    print(f"{result.model} on the {result.device}: {ready.quantization}, {' '.join(ready.notes)}")
    print(f"prompt {result.prompt_tokens} tokens, {len(result.rounds)} rounds, both in turns\n")
    print("round              prompt tok/s   first token s   decode tok/s    peak MB")
    for number, one in enumerate(result.rounds, 1):
        for side, run_ in (("ours", one.ours), ("mlx-lm", one.mlx_lm)):
            print(
                f"{number:>3}  {side:<12} {run_.prompt_rate:>12.1f} "
                f"{run_.time_to_first_token:>15.3f} {run_.decode_rate:>14.1f} "
                f"{run_.peak_memory / 1e6:>10.0f}"
            )
    print(f"\nours / mlx-lm, median: decode {result.decode_ratio:.3f}, ", end="")
    print(f"prompt {result.prompt_ratio:.3f}")
    print(f"greedy ids that agree: {result.same_ids} of {result.compared}")
    return 0
