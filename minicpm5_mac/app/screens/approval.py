"""The dialog that asks whether a call may run: all of it in sight, one key for each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.timer import Timer
from textual.widgets import Static

from minicpm5_mac.agent.approval import Decision, Scope
from minicpm5_mac.app.screens.dialog import Dialog
from minicpm5_mac.app.screens.question import Question
from minicpm5_mac.app.transcript.shown_text import ShownText
from minicpm5_mac.events import ApprovalWanted
from minicpm5_mac.visible_text import unhidden

QUIET_SECONDS = 0.7
"""The dialog takes no answer before nobody has typed for this long: what somebody was typing when
it appeared is no answer. Typists pause about 0.2 s between keys."""


class ShownScroll(VerticalScroll):
    """The whole call, to scroll through; says which part is in sight."""

    def __init__(self, *children: Static | ShownText) -> None:
        super().__init__(*children)
        self.moved: Callable[[], None] = lambda: None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.moved()

    def on_resize(self) -> None:
        self.call_after_refresh(self.moved)


class Approval(Dialog[Decision]):
    """Returns the user's decision; Escape denies. No key that a button would take approves."""

    BINDINGS: ClassVar = [
        Binding("y", "allow('once')", "once"),
        Binding("s", "allow('session')", "this session"),
        Binding("f", "allow('folder')", "this folder"),
        Binding("n", "deny", "no"),
        Binding("w", "deny_with_word", "no, and why"),
        Binding("v", "view_all", "view all"),
        Binding("escape", "close", "deny", show=False),
    ]
    DEFAULT_CSS = """
    Approval > .dialog-box {
        width: 96;
        padding: 0 1;
        & > .title { text-style: bold; height: auto; max-height: 3; }
        & > .danger { display: none; color: $error; text-style: bold; }
        & > .danger.-any { display: block; }
        & > ShownScroll {
            height: auto;
            max-height: 12;
            margin: 1 0;
            padding: 0 1;
            background: $background;
            scrollbar-size-vertical: 1;
        }
        & > .part { color: $text-muted; height: 1; text-align: right; }
        & > .rule { color: $text-muted; height: auto; max-height: 3; }
        & > .locked { color: $warning; height: 1; }
        & > Footer { margin: 0; }
    }
    Approval.-all > .dialog-box { width: 100%; height: 100%; max-height: 100%; }
    Approval.-all > .dialog-box > ShownScroll { height: 1fr; max-height: 100%; }
    """

    def __init__(
        self,
        wanted: ApprovalWanted,
        *,
        danger: str = "",
        mode: str = "",
        drafting: Callable[[], bool] = lambda: False,
        typed: Callable[[str], object] = lambda character: None,
    ) -> None:
        """danger: what the user must know besides. drafting: a message is being written.

        typed: takes characters that were meant for what lies below the dialog.
        """
        super().__init__()
        self.wanted = wanted
        self.title = "May this run?"
        self._danger = danger
        self._mode = mode
        self._drafting = drafting
        self._typed = typed
        self._armed = False
        self._pause: Timer | None = None

    @property
    def armed(self) -> bool:
        """Whether its keys answer now."""
        return self._armed

    def content(self) -> ComposeResult:
        wanted = self.wanted
        yield Static(unhidden(wanted.title), classes="title", markup=False)
        danger = Static(self._danger, classes="danger", markup=False)
        danger.set_class(bool(self._danger), "-any")
        yield danger
        yield ShownScroll(ShownText(wanted.shown, diff=wanted.kind == "write"))
        yield Static(classes="part", markup=False)
        rule = unhidden(wanted.rule).replace("\n", "\u240a")
        means = f"s and f mean: {rule}" if rule else "Only this call can be allowed."
        yield Static(means, classes="rule", markup=False)
        yield Static(classes="locked", markup=False)

    def on_mount(self) -> None:
        self.query_one(".dialog-box").border_subtitle = " · ".join(
            filter(None, (self._mode, "esc denies"))
        )
        scroll = self.query_one(ShownScroll)
        scroll.moved = self._tell_part
        scroll.focus()
        self._wait_for_quiet()
        self.call_after_refresh(self._tell_part)

    # Answers ------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        lasting = action == "allow" and parameters != ("once",)
        return not (lasting and not self.wanted.rule)

    def action_allow(self, scope: Scope) -> None:
        if self._armed:
            self.dismiss(Decision(True, scope))

    def action_deny(self) -> None:
        if self._armed:
            self.dismiss(Decision(False))

    def action_close(self) -> None:
        self.dismiss(Decision(False))

    def action_deny_with_word(self) -> None:
        if self._armed:
            question = Question("Deny it", "A word to the model: what it is to do instead.")
            self.app.push_screen(question, self._deny_with)

    def _deny_with(self, word: str | None) -> None:
        if word is not None:
            self.dismiss(Decision(False, word=word))

    # Not by accident ----------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        if self._armed:
            return
        if event.key == "tab":  # here and not as a binding: what is typed next would overtake it
            event.stop()
            event.prevent_default()
            self._arm()
        elif event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self._typed(event.character)
            self._wait_for_quiet()
        elif event.key in ("enter", "backspace"):
            event.stop()
            event.prevent_default()
            self._wait_for_quiet()

    def _wait_for_quiet(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        drafting = self._drafting()
        waits = "You are writing a message: press tab, then answer." if drafting else "…"
        self.query_one(".locked", Static).update(waits)
        self._pause = self.set_timer(QUIET_SECONDS, self._quiet)

    def _quiet(self) -> None:
        if not self._drafting():
            self._arm()

    def _arm(self) -> None:
        self._armed = True
        self.query_one(".locked", Static).update("")

    # Seeing all of it ---------------------------------------------------------------------------

    def action_view_all(self) -> None:
        if self._armed:
            self.toggle_class("-all")
            self.call_after_refresh(self._tell_part)

    def _tell_part(self) -> None:
        scroll = self.query_one(ShownScroll)
        total, height = scroll.virtual_size.height, scroll.container_size.height
        top = round(scroll.scroll_y)
        part = f"rows {top + 1} to {min(total, top + height)} of {total} · ↑ ↓ scroll, v views all"
        self.query_one(".part", Static).update(part if total > height else "")
