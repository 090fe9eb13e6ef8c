"""What a call came to: the server's content as text, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class McpAnswer:
    """text: for the model; nothing in it is safe for a terminal yet.

    outcome: `error` also where the server says itself that the call failed.
    """

    outcome: Literal["ok", "error", "limit", "cancelled"]
    text: str


def text_of(content: Iterable[Any], structured: Any) -> str:
    """The content of an answer as text: what is no text is named, not shown.

    content: blocks as of the SDK. structured: a JSON value, which a server that has one is asked
    to give as text as well; it is shown where it did not.
    """
    blocks = list(content)
    parts = [_block(block) for block in blocks]
    texts = any(getattr(block, "type", "") == "text" and block.text.strip() for block in blocks)
    if structured is not None and not texts:
        parts.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(part for part in parts if part)


def _block(block: Any) -> str:
    match getattr(block, "type", ""):
        case "text":
            return block.text
        case "image" | "audio" as kind:
            return f"[{kind}, {block.mime_type}, {_size(block.data)}, not shown]"
        case "resource":
            resource = block.resource
            if hasattr(resource, "text"):
                return f"[{resource.uri}]\n{resource.text}"
            kind = resource.mime_type or "binary"
            return f"[{resource.uri}: {kind}, {_size(resource.blob)}, not shown]"
        case "resource_link":
            return f"[link to {block.uri}: {block.name}]"
    return "[content of an unknown kind, not shown]"


def _size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"
