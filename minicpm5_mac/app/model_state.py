"""Where the model stands before and after it is ready, folded from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from minicpm5_mac import events
from minicpm5_mac.events import DownloadProgress, Event, ModelFailed, ModelReady

_STAGES = {
    "starting": "starting",
    "resolving": "looking for",
    "downloading": "downloading",
    "importing": "importing",
    "loading": "loading",
    "ready": "",
}


@dataclass(frozen=True)
class ModelState:
    """name: as the user or the model itself says it. At most one of ready, failed, stopped.

    stage: what it is doing, a verb; empty when it is doing nothing before being ready.
    stopped: why its process ended, empty while it lives.
    """

    name: str
    stage: str = ""
    detail: str = ""
    download: DownloadProgress | None = None
    ready: ModelReady | None = None
    failed: ModelFailed | None = None
    stopped: str = ""

    @property
    def starting(self) -> bool:
        return bool(self.stage)

    @property
    def downloading(self) -> bool:
        return self.stage == "downloading"

    def after(self, batch: Iterable[Event]) -> ModelState:
        """The state once these events have happened; those of replies change nothing."""
        state = self
        for event in batch:
            state = state._after_one(event)
        return state

    def _after_one(self, event: Event) -> ModelState:
        match event:
            case events.ModelStage(stage=stage, detail=detail):
                return replace(
                    self, stage=_STAGES[stage], detail=detail, failed=None, stopped="", ready=None
                )
            case DownloadProgress():
                return replace(self, stage="downloading", download=event)
            case ModelReady():
                return ModelState(self.name, ready=event)
            case ModelFailed():
                return ModelState(self.name, failed=event)
            case events.EngineStopped(reason=reason, detail=detail):
                said = {"crashed": "stopped unexpectedly", "hung": "no longer answers"}
                return ModelState(self.name, stopped=said.get(reason, "was closed"), detail=detail)
            case _:
                return self

    def line(self) -> str:
        """The stage in a few words, with how far a download is."""
        if self.downloading and self.download is not None:
            return f"{self.stage} {self.name} · {download_text(self.download)}"
        return f"{self.stage} {self.name}" if self.stage else ""


def download_text(progress: DownloadProgress) -> str:
    """Bytes, share, speed and time left, as far as they are known."""
    parts = [size_text(progress.done_bytes)]
    if progress.total_bytes:
        share = progress.done_bytes / progress.total_bytes
        parts.insert(0, f"{share:.0%}".replace("%", " %"))
        parts[1] += f" of {size_text(progress.total_bytes)}"
    if progress.bytes_per_second > 0:
        parts.append(f"{size_text(progress.bytes_per_second)}/s")
    if progress.seconds_left is not None:
        parts.append(f"{duration_text(progress.seconds_left)} left")
    return " · ".join(parts)


def paused_text(model: ModelState) -> str:
    """That a download was stopped, and how far it is."""
    progress = model.download
    far = (
        f" at {progress.done_bytes / progress.total_bytes:.0%}".replace("%", " %")
        if (progress and progress.total_bytes)
        else ""
    )
    return f"The download of {model.name} is paused{far}."


def size_text(count: float) -> str:
    """Bytes in the units of a file manager: powers of 1000."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
