"""What travels between the app and the model process, one JSON object a line.

Downwards commands, upwards events; beside the events a heartbeat, so that a process that is alive
but slow can be told from one that hangs.
"""

from __future__ import annotations

import msgspec

from minicpm5_mac import events
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.events import Event
from minicpm5_mac.request import ReplyRequest

# Seconds between heartbeats.
HEARTBEAT = 1.0


class Command(msgspec.Struct, frozen=True, tag_field="do", tag=str.lower):
    """What the app asks of the model process."""


class Start(Command, frozen=True):
    """Load this model."""

    options: EngineOptions


class Reply(Command, frozen=True):
    """Write one reply."""

    request: ReplyRequest


class Cancel(Command, frozen=True):
    """End the running reply."""


class AnswerNow(Command, frozen=True):
    """Close the running reply's thinking."""


class Close(Command, frozen=True):
    """End the process."""


class Heartbeat(msgspec.Struct, frozen=True, tag_field="event", tag="heartbeat"):
    """The process lives. idle: seconds since the model last moved, 0 where nothing runs."""

    idle: float


_command_decoder = msgspec.json.Decoder(Start | Reply | Cancel | AnswerNow | Close)
_message_decoder = msgspec.json.Decoder(events.AnyEvent | Heartbeat)


def encode(message: Command | Event | Heartbeat) -> bytes:
    """One line, newline included."""
    return msgspec.json.encode(message) + b"\n"


def decode_command(line: bytes) -> Command:
    """Raises msgspec.ValidationError or DecodeError for what is no command."""
    return _command_decoder.decode(line)


def decode_message(line: bytes) -> Event | Heartbeat:
    """Raises msgspec.ValidationError or DecodeError for what is no event."""
    return _message_decoder.decode(line)
