"""MCP servers in the running app: told where they fail, asked for by one key, listed by /tools."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from app_driver import idle, screen_text, until
from calling_engine import CallingEngine
from server_samples import raw

from minicpm5_mac.agent.toolbox import Toolbox
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.app.screens.approval import Approval
from minicpm5_mac.app.screens.choice import Choice
from minicpm5_mac.app.tool_words import offered_tools, sandbox_words
from minicpm5_mac.app.transcript import AssistantMessage
from minicpm5_mac.mcp_servers.server import McpServer
from minicpm5_mac.messages import ToolCall
from minicpm5_mac.sandbox.policy import Policy


async def test_a_call_is_asked_for_and_run_and_tools_lists_the_servers(
    options: AppOptions, workspace: Path, sandbox: None
):
    servers = (raw("ok"), raw("dies at once", name="bad"))
    toolbox = Toolbox(Policy(workspace), servers=servers)
    call = ToolCall("raw_act", {"x": "a\u200bb"})
    engine = CallingEngine(options.make_engine("tiny"), [call])  # type: ignore[arg-type]
    options = dataclasses.replace(options, make_engine=lambda name: engine, toolbox=toolbox)
    app = ChatApp(options)
    async with app.run_test(size=(100, 40), notifications=True) as pilot:
        await idle(pilot)
        await until(pilot, lambda: "MCP server bad is not" in screen_text(app))
        app.chat.composer.load("go")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Approval) and app.screen.armed)
        shown = screen_text(app)
        assert "MCP server: raw, program" in shown
        assert '"x": "a⟨U+200B⟩b"' in shown
        assert "as its MCP server defines it now" in shown
        await pilot.press("y")
        await idle(pilot)
        replies = [v for v in app.chat.transcript.messages if isinstance(v, AssistantMessage)]
        (result,) = [run.result for view in replies for run in view.runs if run.result]
        assert (result.name, result.outcome, result.text) == ("raw_act", "ok", "acted ok")

        app.chat.composer.load("/tools")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Choice))
        shown = screen_text(app)
        assert "MCP server raw (program " in shown
        assert "MCP server bad" in shown
        await pilot.press("escape")
        assert toolbox.servers is not None
        thread = toolbox.servers._thread
        assert thread is not None
        app.live.use_tools(None)
        assert not thread.is_alive()
    app.live.close()


def test_what_is_said_of_servers_names_where_calls_go(workspace: Path):
    there = McpServer("web", url="https://a.example/mcp\u202e")
    toolbox = Toolbox(Policy(workspace), servers=(there, McpServer("own", command=("x", "y"))))
    lines = offered_tools(toolbox)
    assert (
        lines[1]
        == "MCP server web (outside of the sandbox, https://a.example/mcp⟨U+202E⟩): no tools"
    )
    assert lines[2] == "MCP server own (program x y): no tools"
    assert "but for the calls of web" in sandbox_words(toolbox)
    assert sandbox_words(Toolbox(Policy(workspace))).endswith("without network.")
