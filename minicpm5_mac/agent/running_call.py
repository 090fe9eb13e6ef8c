"""One call while it runs in the sandbox: its output as it comes, its end, its cancelling."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from minicpm5_mac.agent.call_result import CallResult, of_command, of_mcp, of_value
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.call import McpCall
from minicpm5_mac.mcp_servers.definition import McpTool
from minicpm5_mac.mcp_servers.servers import McpServers
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.output import plain_text
from minicpm5_mac.sandbox.policy import Policy
from minicpm5_mac.sandbox.process import Reason, RunningCommand, start
from minicpm5_mac.sandbox.worker_call import (
    RunningWorker,
    WorkerCall,
    WorkerError,
    python_command,
    shell_command,
)
from minicpm5_mac.sandbox.wrapping import Wrapper
from minicpm5_mac.tools import search
from minicpm5_mac.tools.run_command import TIMEOUT
from minicpm5_mac.tools.tool import Tool
from minicpm5_mac.visible_text import visible

LIVE_BYTES = 256 * 1024
"""Of a flood of output this much is shown as it comes; the result says what was left out."""
LIVE_SECONDS = 0.05
_IN_WORDS = ("ToolError", "MissingFolder")  # tools/place.py: made for the model to read


class RunningCall:
    """A call that runs. `cancel` may be called from any thread."""

    def __init__(
        self,
        tool: Tool,
        call: ToolCall,
        policy: Policy,
        *,
        place: dict[str, Any],
        output_name: str,
        wrapper: Wrapper | None,
        servers: McpServers | None = None,
    ) -> None:
        """place: for file tools, the roots they must keep to (tools/place.py).

        output_name: under which read_file is to find output that is not shown whole.
        servers: those that an `mcp` tool is called at.
        """
        self.tool = tool
        self.value: Any = None
        self.result = CallResult("error", "Error: the call did not end.")
        self._output_name = output_name
        self._policy = policy
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._live: list[str] = []
        self._heard = 0
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._done = False
        self._work: RunningCommand | RunningWorker | McpCall | None = None
        try:
            if isinstance(tool, McpTool):
                assert servers is not None
                self._work = servers.call(tool, call.arguments)
            else:
                self._work = self._begin(tool, call, place, wrapper)
        except Failure as failure:
            self._fail(failure)
            return
        threading.Thread(target=self._wait, name="tool call", daemon=True).start()

    def cancel(self) -> None:
        """End it; what it wrote is kept."""
        if self._work is not None:
            self._work.cancel()

    def output(self) -> Iterator[str]:
        """Text as it comes, until the call has ended; then `result` holds."""
        while True:
            self._changed.wait()
            self._changed.clear()
            done = self._done
            with self._lock:
                text, self._live = "".join(self._live), []
            if text:
                yield text
            if done:
                return
            time.sleep(LIVE_SECONDS)

    def _begin(
        self, tool: Tool, call: ToolCall, place: dict[str, Any], wrapper: Wrapper | None
    ) -> RunningCommand | RunningWorker:
        arguments = dict(call.arguments)
        limits = self._policy.limits
        if tool.kind == "command":
            seconds = float(arguments.get("timeout", TIMEOUT))
            policy = replace(self._policy, limits=replace(limits, wall_seconds=seconds))
            argv = (
                python_command(arguments["code"])
                if "code" in arguments
                else shell_command(arguments["command"])
            )
            return start(policy, argv, on_output=self._hear, wrapper=wrapper)
        policy = self._policy
        if tool.name == search.SCHEMA["function"]["name"]:
            policy = replace(policy, limits=replace(limits, wall_seconds=search.WALL_SECONDS))
        if tool.kind in ("read", "write"):
            arguments["place"] = place
        assert tool.file is not None
        return RunningWorker(policy, WorkerCall(tool.file, "run", arguments), wrapper)

    def _hear(self, _stream: str, chunk: bytes) -> None:
        if self._heard >= LIVE_BYTES:
            return
        self._heard += len(chunk)
        text = visible(plain_text(self._decoder.decode(chunk)))
        with self._lock:
            self._live.append(text)
        self._changed.set()

    def _wait(self) -> None:
        work = self._work
        try:
            if isinstance(work, RunningCommand):
                self.result = of_command(work.wait(), self._output_name)
            elif isinstance(work, McpCall):
                self.result = of_mcp(work.wait(), self._policy.limits, self._output_name)
            elif work is not None:
                answer = work.wait()
                if answer.error is not None:
                    self.result = self._error(answer.error)
                else:
                    self._take(answer.value, answer.printed)
        except Failure as failure:
            self._fail(failure)
        except Exception as error:
            self.result = CallResult("error", f"Error: {type(error).__name__}: {error}")
        self._end()

    def _take(self, value: Any, printed: str) -> None:
        self.value = value
        if self.tool.kind in ("read", "write"):
            self.result = CallResult("ok", visible(value["text"]))
        else:
            self.result = of_value(value, printed, self._policy.limits, self._output_name)

    def _error(self, error: WorkerError) -> CallResult:
        if error.kind == Reason.CANCELLED:
            return CallResult("cancelled", "[the user cancelled it]")
        if error.kind in set(Reason):
            return CallResult("limit", f"Error: {error.message}. Ask for less.")
        kind = "" if error.kind in _IN_WORDS else f"{error.kind}: "
        return CallResult("error", visible(f"Error: {kind}{error.message}"))

    def _fail(self, failure: Failure) -> None:
        self.result = CallResult("error", visible(f"Error: {failure}"))
        self._end()

    def _end(self) -> None:
        self._done = True
        self._changed.set()
