"""A call of an MCP server's tool while it runs."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future

from minicpm5_mac.mcp_servers.answer import McpAnswer


class McpCall:
    """A call that runs; `cancel` and `wait` may be called from any thread."""

    def __init__(self, future: Future[McpAnswer]) -> None:
        self._future = future

    def cancel(self) -> None:
        """End it at once. The server is told, and what it does about it is not waited for."""
        self._future.cancel()

    def wait(self) -> McpAnswer:
        """What it came to; never raises."""
        try:
            return self._future.result()
        except CancelledError:
            return McpAnswer("cancelled", "[the user cancelled it]")
