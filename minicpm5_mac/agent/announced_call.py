"""Whether a reply without a call announced one: small models stop after "I will write it now."

Such a reply is answered once in a turn by NUDGE; the model then makes the call, or answers.
"""

from __future__ import annotations

import re

NUDGE = "Call the tool now, or answer."

_WORK = (
    r"(?:read|look|check|open|list|search|find|run|execute|call|use|write|create|edit|change|"
    r"fix|update|add|replace|delete|remove|make|start|test|see|inspect|examine)"
)
_ANNOUNCED = re.compile(
    rf"\b(?:I(?:'|’)ll|I will|I am going to|I(?:'|’)m going to|let me|let(?:'|’)s|next,? I|"
    rf"now I|first,? I)\b[^.!?\n]*\b{_WORK}\b"
    r"|(?:让我|我来|我将|我会|我先|接下来)[^。！？\n]*"
    r"(?:读|看|查|打开|列|搜|找|运行|执行|调用|写|创建|编辑|修改|修复|更新|添加|替换|删)",
    re.IGNORECASE,
)
# An answer may also say what it would do: only if it hands the word back it is an answer.
_HANDS_BACK = re.compile(r"[?？]\s*$|\bif you\b|\blet me know\b|如果你|请告诉", re.IGNORECASE)


def announces_call(text: str) -> bool:
    """Whether the end of an answer says that something will be done now."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines or "```" in text:
        return False
    last = re.split(r"(?<=[.!。！])\s+", lines[-1])[-1]
    return bool(_ANNOUNCED.search(last)) and not _HANDS_BACK.search(lines[-1])
