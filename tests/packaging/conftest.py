"""The scripts that build the app are no package: they are imported from their folder."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGING = Path(__file__).parents[2] / "packaging"

sys.path.insert(0, str(PACKAGING))
