"""What was typed and is not stored as a message yet: nothing of it may be lost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Unsent:
    """The texts beside the one in the composer.

    waiting: goes out when the model is ready or the running reply has ended. sending: was handed
    to the session, which has not stored it yet. editing: the id of the earlier message that is in
    the composer, original: its text; set_aside: the draft that comes back after that edit.
    """

    waiting: str = ""
    sending: str = ""
    editing: int | None = None
    original: str = ""
    set_aside: str = ""

    def wait(self, text: str) -> None:
        """Another message that has to wait; what waits goes out as one."""
        self.waiting = f"{self.waiting}\n\n{text}" if self.waiting else text

    def take_waiting(self) -> str:
        """What waited; nothing waits any more."""
        text, self.waiting = self.waiting, ""
        return text

    def take_sending(self) -> str:
        """What was being sent; nothing is any more."""
        text, self.sending = self.sending, ""
        return text

    def begin_edit(self, message: int, text: str, draft: str) -> None:
        """An earlier message takes the composer; the draft of before the first edit is kept."""
        if self.editing is None:
            self.set_aside = draft
        self.editing, self.original = message, text

    def end_edit(self) -> str:
        """Leave the edit; returns the draft that was set aside for it."""
        text, self.set_aside = self.set_aside, ""
        self.editing, self.original = None, ""
        return text

    def all(self, composer: str) -> str:
        """Everything to keep as the draft. composer: what is in it now.

        An earlier message that is edited belongs to it once it was changed.
        """
        parts = [self.sending, self.waiting, self.set_aside]
        if self.editing is None or composer != self.original:
            parts.append(composer)
        return "\n\n".join(part for part in parts if part.strip())
