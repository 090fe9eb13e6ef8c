"""Token ids as a compact blob: 32-bit little-endian arrays, deflated, behind one version byte."""

from __future__ import annotations

import sys
import zlib
from array import array

import msgspec

from minicpm5_mac.messages import TurnIds

VERSION = 1


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    fingerprint: str
    whole: bool
    prompt: bytes
    generated: bytes


_decoder = msgspec.msgpack.Decoder(_Packed)


def pack(ids: TurnIds) -> bytes:
    """The blob of one message's ids."""
    packed = _Packed(ids.fingerprint, ids.whole, _to_bytes(ids.prompt), _to_bytes(ids.generated))
    return bytes([VERSION]) + zlib.compress(msgspec.msgpack.encode(packed), level=1)


def unpack(blob: bytes | None) -> TurnIds | None:
    """The ids, or None where there are none or they cannot be read: they only save time."""
    if not blob or blob[0] != VERSION:
        return None
    try:
        packed = _decoder.decode(zlib.decompress(blob[1:]))
        prompt, generated = _from_bytes(packed.prompt), _from_bytes(packed.generated)
    except (zlib.error, msgspec.MsgspecError, ValueError):
        return None
    return TurnIds(packed.fingerprint, packed.whole, prompt, generated)


def _to_bytes(ids: tuple[int, ...]) -> bytes:
    values = array("I", ids)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _from_bytes(data: bytes) -> tuple[int, ...]:
    values = array("I")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(values)
