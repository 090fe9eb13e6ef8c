"""What only describes the command line starts fast: it loads none of the heavy libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from minicpm5_mac.cli.command_tree import command_tree
from minicpm5_mac.cli.main import build_parser

HEAVY = {"mlx", "mlx_lm", "transformers", "numpy", "huggingface_hub", "textual", "mcp"}

HELP = [[*command.path, "--help"] for command in command_tree(build_parser())]
SCRIPTS = [["completion", shell] for shell in ("bash", "zsh", "fish")]

RUN = """
import json, sys
from minicpm5_mac.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code in (0, None), end.code
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("words", [["--version"], *HELP, *SCRIPTS], ids=" ".join)
def test_describing_the_command_line_loads_nothing_heavy(words: list[str]):
    run = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    loaded = {name.partition(".")[0] for name in json.loads(run.stderr.splitlines()[-1])}
    assert "minicpm5_mac" in loaded
    assert not loaded & HEAVY
