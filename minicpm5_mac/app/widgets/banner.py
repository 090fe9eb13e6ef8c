"""One line above the composer for what stays true until something is done about it."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from minicpm5_mac.app.banner_text import Said


class Banner(Static):
    """A sentence and the key that acts on it; hidden while there is nothing to say."""

    DEFAULT_CSS = """
    Banner {
        display: none;
        height: auto;
        max-height: 5;
        margin: 0 2;
        padding: 0 1;
        background: $surface;
        color: $foreground;
        border-left: thick $primary;
        &.-said { display: block; }
        &.-warning { border-left: thick $warning; }
        &.-error { border-left: thick $error; }
    }
    """

    def show(self, said: Said | None) -> None:
        """Show a sentence, and what to press in a quieter colour; or nothing."""
        self.set_class(said is not None, "-said")
        if said is not None:
            self.set_class(said.level == "warning", "-warning")
            self.set_class(said.level == "error", "-error")
            advice = f"  {said.advice}" if said.advice else ""
            self.update(Content.assemble(said.text, (advice, "$text-muted")))
