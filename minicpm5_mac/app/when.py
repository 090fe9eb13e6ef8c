"""Times in words, as a list of conversations shows them."""

from __future__ import annotations

from datetime import datetime


def when(then: float, now: float) -> str:
    """`then` seen from `now`, both seconds since 1970: minutes, the time of day, or the date."""
    ago = now - then
    if ago < 60:
        return "now"
    if ago < 3600:
        return f"{ago // 60:.0f} min ago"
    day, today = datetime.fromtimestamp(then), datetime.fromtimestamp(now)
    if day.date() == today.date():
        return f"{day:%H:%M}"
    if (today.date() - day.date()).days == 1:
        return "yesterday"
    return f"{day.day} {day:%b}" if day.year == today.year else f"{day:%Y-%m-%d}"
