"""What an empty conversation shows: the model, how far it is, and where to begin."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from minicpm5_mac.app.model_state import ModelState, download_text, size_text

_BAR_CELLS = 32
_BEGIN = (
    ("enter", "send", "shift+enter or ctrl+j for a new line"),
    ("@", "attach a file", "@notes.txt"),
    ("/", "commands", "/model  /think  /resume"),
    ("f1", "all keys", "ctrl+p finds any command"),
)


class Welcome(Widget):
    """Drawn before anything is loaded, so it needs nothing but the model's name."""

    DEFAULT_CSS = """
    Welcome {
        height: 1fr;
        align: center middle;
        content-align: center middle;
        background: $background;
    }
    """

    state: reactive[ModelState] = reactive(ModelState(""))

    def render(self) -> Content:
        lines = [Content.styled("MiniCPM5", "bold $primary"), *self._model(), Content("")]
        if self.size.height >= 10:
            for key, what, more in _BEGIN:
                lines.append(
                    Content.assemble(
                        (f"{key:>6}  ", "$primary"), f"{what:<15}", (f"{more:<38}", "$text-muted")
                    )
                )
        width = max(line.cell_length for line in lines)
        return Content("\n").join(_centred(line, width) for line in lines)

    def _model(self) -> list[Content]:
        state = self.state
        if state.failed is not None:
            return [Content.styled("no model is loaded", "$warning")]
        if state.ready is not None:
            ready = state.ready
            about = " · ".join(
                part
                for part in (ready.quantization, size_text(ready.weight_bytes), ready.device)
                if part
            )
            return [
                Content.assemble(state.name, (f"  {about}", "$text-muted")),
                *(Content.styled(note, "$text-muted") for note in ready.notes),
            ]
        if state.download is not None and state.downloading:
            progress = state.download
            lines = [Content.styled(f"downloading {state.name}", "$text-muted")]
            if progress.total_bytes:
                filled = round(_BAR_CELLS * min(1.0, progress.done_bytes / progress.total_bytes))
                lines.append(
                    Content.assemble(
                        ("━" * filled, "$primary"), ("━" * (_BAR_CELLS - filled), "$border-blurred")
                    )
                )
            text = f"{download_text(progress)} · esc pauses"
            lines.append(Content.styled(text, "$text-muted"))
            return lines
        said = state.line() or (f"{state.name} {state.stopped}" if state.stopped else state.name)
        return [Content.styled(said, "$text-muted")]


def _centred(line: Content, width: int) -> Content:
    return Content(" " * ((width - line.cell_length) // 2)) + line
