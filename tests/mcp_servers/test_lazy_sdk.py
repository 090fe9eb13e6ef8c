"""The SDK, which takes a second to load, is loaded for a server and for nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys

LOADED = """
import json, sys
from pathlib import Path
import minicpm5_mac.agent.session
import minicpm5_mac.app.tool_words
from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.sandbox.policy import Policy
Toolbox(Policy(Path(sys.argv[1])), servers=(McpServer("x", command=("x",)),))
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_sdk_is_loaded_by_the_start_of_a_server_alone(workspace):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(workspace)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    loaded = set(json.loads(done.stdout))
    assert "minicpm5_mac" in loaded
    assert not loaded & {"mcp", "mcp_types", "anyio", "starlette", "opentelemetry", "httpx2"}
