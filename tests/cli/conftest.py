"""The sandbox and a workspace for commands with tools."""

from tried_sandbox import sandbox, sandbox_cache, workspace  # noqa: F401
