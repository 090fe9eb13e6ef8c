"""run_command: a shell command, whose output streams."""

from __future__ import annotations

from minicpm5_mac.tools.schema import function_schema

TIMEOUT = 60
LONGEST = 600
LONGEST_TEXT = 100_000
"""Linux takes at most 128 KiB in one argument of a program (MAX_ARG_STRLEN)."""

SCHEMA = function_schema(
    "run_command",
    "Run a shell command in the workspace. No network.",
    ("command",),
    command={"type": "string"},
    timeout={"type": "integer", "minimum": 1, "maximum": LONGEST, "description": "seconds"},
)
