"""Runs Metal kernels on the CPU from their text, checks every access and counts every byte."""

from mlx_kernels.emulator.runtime import Emulation, LaunchReport, emulate
from mlx_kernels.emulator.strict_check import strict_check
from mlx_kernels.emulator.traffic import Traffic

__all__ = ["Emulation", "LaunchReport", "Traffic", "emulate", "strict_check"]
