"""python: a Python program, standard library only, whose output streams."""

from __future__ import annotations

from minicpm5_mac.tools.run_command import LONGEST
from minicpm5_mac.tools.schema import function_schema

SCHEMA = function_schema(
    "python",
    "Run Python code. print what you need.",
    ("code",),
    code={"type": "string"},
    timeout={"type": "integer", "minimum": 1, "maximum": LONGEST, "description": "seconds"},
)
