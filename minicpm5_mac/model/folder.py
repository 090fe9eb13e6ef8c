"""Where a model is on disk, once it is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class ModelFolder:
    """A folder that holds a whole model in MLX format.

    name: as the user would write it after --model. revision: the hub's commit, the wheel or file
    an import came from, or empty for a folder of the user's own. source: where it came from.
    """

    name: str
    path: Path
    revision: str
    source: Literal["hub", "demo", "import", "folder"]
