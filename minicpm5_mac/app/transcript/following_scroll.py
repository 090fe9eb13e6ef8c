"""A scroll that stays at the end until the reader scrolls back, and again once back at the end."""

from __future__ import annotations

from dataclasses import dataclass

from textual.containers import VerticalScroll
from textual.message import Message


class FollowingScroll(VerticalScroll):
    """Follows its end by Textual's anchor; says when that changes."""

    @dataclass
    class FollowingChanged(Message):
        """The reader left the end (False) or is back at it (True)."""

        following: bool

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._said_following = True

    @property
    def following(self) -> bool:
        """Whether new content scrolls into view."""
        return self.is_anchored and not self._anchor_released

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.anchor()
        self._say_following()

    def on_mount(self) -> None:
        self.anchor()

    def release_anchor(self) -> None:
        super().release_anchor()
        self.call_later(self._say_following)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._say_following()

    def _say_following(self) -> None:
        if self.following != self._said_following:
            self._said_following = self.following
            self.post_message(self.FollowingChanged(self.following))
