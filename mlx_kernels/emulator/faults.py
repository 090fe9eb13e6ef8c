"""What the emulator refuses, each by a name of its own."""

from __future__ import annotations

from dataclasses import dataclass


class EmulatorError(Exception):
    """Anything that the emulator refuses or cannot do."""


class CompilerMissing(EmulatorError):
    """Neither g++ nor clang++ is installed."""


class CompileFailed(EmulatorError):
    """The kernel's text does not compile; the message is the compiler's, with the file and line."""


class LaunchRefused(EmulatorError):
    """Metal or MLX would refuse this call: a limit, a missing array, a shape."""


class TooManyThreads(LaunchRefused):
    """More than 1,024 threads in a threadgroup."""


class TooManyBuffers(LaunchRefused):
    """More than 31 buffer arguments."""


@dataclass(frozen=True)
class Place:
    """Where in the kernel: the buffer or threadgroup variable, the thread, the line of text.

    memory: name of the buffer or variable, or None. offset: in bytes from its start.
    threadgroup: position in the grid. thread: index in the threadgroup. file, line: of the access
    or of the collective; None where it is not known.
    """

    memory: str | None
    offset: int
    size: int
    threadgroup: tuple[int, int, int]
    thread: int
    file: str | None
    line: int | None


class KernelFault(EmulatorError):
    """A fault of the kernel while it ran. `place` says where."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.place = place


class OutOfBounds(KernelFault):
    """A load or store outside every buffer and threadgroup variable."""


class Misaligned(KernelFault):
    """A load or store whose address is not a multiple of its type's alignment."""


class WriteToInput(KernelFault):
    """A store into an input array."""


class UninitialisedRead(KernelFault):
    """A read of threadgroup or output memory that nobody wrote."""


class Race(KernelFault):
    """Two threads access one byte, at least one writes, and no barrier is between them."""


class DivergentBarrier(KernelFault):
    """A threadgroup barrier that not all threads of the threadgroup reach."""


class DivergentSimdgroup(KernelFault):
    """A SIMD function that the lanes of a simdgroup do not reach together."""


class ThreadgroupMemoryExceeded(KernelFault):
    """More than 32,768 bytes of threadgroup memory."""


class InactiveLane(KernelFault):
    """A shuffle from a lane that takes no part in it."""


class ArrayIndex(KernelFault):
    """An index outside an array whose length the text gives."""


class OrderDependence(EmulatorError):
    """The results depend on the order in which lanes and simdgroups ran."""
