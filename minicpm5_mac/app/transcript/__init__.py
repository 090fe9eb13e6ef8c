"""The scrolling conversation: messages, reasoning, tool calls, notices.

`Transcript` holds them; every widget works on its own and carries its own keys.
"""

from minicpm5_mac.app.transcript.assistant_message import AssistantMessage
from minicpm5_mac.app.transcript.entry import Entry, ToolResult
from minicpm5_mac.app.transcript.message import CopyRequested, EditRequested, MessageView
from minicpm5_mac.app.transcript.notice_line import NoticeLine
from minicpm5_mac.app.transcript.reasoning_pane import ReasoningPane
from minicpm5_mac.app.transcript.tool_call_line import ToolCallLine
from minicpm5_mac.app.transcript.tool_run import CancelCallRequested, ToolRun
from minicpm5_mac.app.transcript.transcript import Transcript
from minicpm5_mac.app.transcript.user_message import UserMessage

__all__ = [
    "AssistantMessage",
    "CancelCallRequested",
    "CopyRequested",
    "EditRequested",
    "Entry",
    "MessageView",
    "NoticeLine",
    "ReasoningPane",
    "ToolCallLine",
    "ToolResult",
    "ToolRun",
    "Transcript",
    "UserMessage",
]
