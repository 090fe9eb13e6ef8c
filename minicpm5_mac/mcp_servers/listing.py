"""A server's tools, asked for once, at the start of a session."""

from __future__ import annotations

import mcp_types as types
from mcp.client.session import ClientSession

from minicpm5_mac.mcp_servers.definition import Listed

MOST_PAGES = 20
MOST_TOOLS = 500
_WHOLE = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


async def listed_tools(session: ClientSession) -> tuple[Listed, ...]:
    """All pages of them, as far as there is an end to that."""
    found: list[Listed] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        page = await session.list_tools(params=params)
        found += [_listed(tool) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor or len(found) >= MOST_TOOLS:
            break
    return tuple(found[:MOST_TOOLS])


def _listed(tool: types.Tool) -> Listed:
    whole = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return Listed(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        {name: whole[name] for name in _WHOLE if name in whole},
    )
