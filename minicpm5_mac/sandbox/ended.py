"""How a sandboxed command ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from minicpm5_mac.sandbox.output import KeptOutput


class Reason(enum.StrEnum):
    """Why a run ended."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUTPUT = "output"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    status: the command's exit status as a shell gives it (128 + signal); 124 at a timeout, 130
        after a cancel, 137 when a limit ended it.
    stderr: None where it was merged into stdout.
    """

    reason: Reason
    status: int
    seconds: float
    stdout: KeptOutput
    stderr: KeptOutput | None
