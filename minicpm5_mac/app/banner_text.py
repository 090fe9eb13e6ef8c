"""What the banner says: the one thing that most needs doing, if anything does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from minicpm5_mac.app.model_state import ModelState
from minicpm5_mac.app.reply_state import ReplyState


@dataclass(frozen=True)
class Said:
    """A sentence, and the keys that act on it."""

    text: str
    advice: str = ""
    level: Literal["info", "warning", "error"] = "info"


def banner(
    model: ModelState,
    reply: ReplyState,
    *,
    waiting: str = "",
    editing: bool = False,
    unanswered: bool = False,
    cut: bool = False,
    full: bool = False,
) -> Said | None:
    """waiting: a message that goes out later. editing: an earlier one is in the composer.

    unanswered: the last message got no reply; cut: its reply broke off by a fault; full: it did
    not fit in the context.
    """
    if model.stopped:
        return Said(
            f"The model {model.stopped}. The conversation is kept.",
            "ctrl+r or f5 starts it again · f8 shows the log",
            "error",
        )
    if model.failed is not None:
        advice = f"{model.failed.advice} f2 chooses a model, f5 tries again.".strip()
        return Said(model.failed.text, advice, "error")
    if reply.running and reply.slow_seconds:
        return Said(
            f"No progress for {reply.slow_seconds:.0f} seconds; the model process is alive.",
            "esc stops the reply · f5 starts the model again",
            "warning",
        )
    if waiting:
        when = "when this reply ends" if reply.running else "when the model is ready"
        return Said(f"Will be sent {when}: {_first_line(waiting)}", "esc takes it back")
    if editing:
        return Said("Editing an earlier message.", "enter sends a new branch · esc leaves it")
    if full and not reply.running and model.ready is not None:
        return Said(
            "The last message does not fit in the context.",
            "/edit, or tab and e, changes it · ctrl+n starts a new conversation",
        )
    if unanswered and not reply.running and model.ready is not None:
        return Said("The last message has no reply yet.", "ctrl+r answers it")
    if cut and not reply.running and model.ready is not None:
        return Said("The last reply broke off.", "ctrl+g lets it go on · ctrl+r answers again")
    return None


def _first_line(text: str, longest: int = 40) -> str:
    line = text.strip().partition("\n")[0]
    return line if line == text.strip() and len(line) <= longest else f"{line[:longest]}…"
