"""MiniCPM5 on an Apple Silicon laptop: chat, agent sessions, and a double-click app."""

__version__ = "0.1.0"
