"""One file over HTTP: resumed where it stopped, checked by size and hash, complete or absent."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2

from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.progress import DownloadMeter

_ATTEMPTS = 5  # in a row without a single new byte
_PAUSE = 1.0  # seconds before another attempt
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class RemoteFile:
    """What is to be fetched. size: bytes; sha256: hexadecimal; headers: sent with each request."""

    url: str
    size: int
    sha256: str
    headers: Mapping[str, str]


class _Interrupted(Exception):
    """The connection broke; what came so far is on disk."""


def fetch(client: httpx2.Client, remote: RemoteFile, target: Path, meter: DownloadMeter) -> None:
    """Bring the file to `target`. What is there already of it is kept and gone on from.

    A download that is cut off leaves `target` with `.incomplete` appended, and the next call
    resumes it. Raises ModelFailure: offline (the host cannot be reached), download (it answers
    with an error, keeps breaking off, or the disk is full), corrupt (the hash is not the expected
    one; the file is removed).
    """
    partial = target.with_name(target.name + ".incomplete")
    if target.is_file() and target.stat().st_size == remote.size:
        meter.found(remote.size)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if partial.exists() and partial.stat().st_size > remote.size:
        partial.unlink()
    have = partial.stat().st_size if partial.exists() else 0
    _require_space(partial.parent, remote.size - have)
    meter.found(have)
    try:
        _fetch_rest(client, remote, partial, meter)
        _require_hash(remote, partial)
        os.replace(partial, target)
    except OSError as error:
        raise ModelFailure(
            "download",
            f"{target.name} could not be written: {error.strerror or error}.",
            "Free some space, or move the cache folder, and try again.",
        ) from error
    meter.report()


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelFailure(
            "download",
            f"The download needs {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on the "
            f"disk of {folder}.",
            "Free some space, or move the cache to another disk (HF_HOME).",
        )


def _fetch_rest(
    client: httpx2.Client, remote: RemoteFile, partial: Path, meter: DownloadMeter
) -> None:
    attempts = 0
    while (have := partial.stat().st_size if partial.exists() else 0) < remote.size:
        try:
            _stream(client, remote, partial, have, meter)
        except (_Interrupted, httpx2.TransportError) as error:
            now = partial.stat().st_size if partial.exists() else 0
            attempts = 0 if now > have else attempts + 1
            if attempts >= _ATTEMPTS or (not now and isinstance(error, httpx2.ConnectError)):
                raise _broken_off(remote, now, error) from error
            time.sleep(_PAUSE)


def _broken_off(remote: RemoteFile, have: int, error: Exception) -> ModelFailure:
    host = httpx2.URL(remote.url).host
    if not have:
        return ModelFailure(
            "offline", f"{host} cannot be reached: {error}.", "Check the network connection."
        )
    return ModelFailure(
        "download",
        f"The download from {host} broke off after {have:,} of {remote.size:,} bytes: {error}.",
        "Run the same command again: it goes on from there.",
    )


def _stream(
    client: httpx2.Client, remote: RemoteFile, partial: Path, have: int, meter: DownloadMeter
) -> None:
    # Compressed transfer would make the byte positions of Range those of something else.
    headers = {**remote.headers, "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", remote.url, headers=headers) as response:
        if response.status_code in _TRANSIENT:
            raise _Interrupted(f"HTTP {response.status_code}")
        whole = response.status_code == 200
        if have and (whole or not _continues(response, have)):
            # The server does not resume this file: begin anew.
            meter.found(-have)
            partial.unlink()
            if not whole:
                return
        elif not response.is_success:
            raise ModelFailure(
                "download",
                f"{response.url.host} answered HTTP {response.status_code} for "
                f"{response.url.path.rsplit('/', 1)[-1]}.",
                "Try again later.",
            )
        with partial.open("ab") as file:
            for chunk in response.iter_raw():
                file.write(chunk)
                meter.received(len(chunk))
        if partial.stat().st_size < remote.size:
            raise _Interrupted("the connection was closed early")


def _continues(response: httpx2.Response, have: int) -> bool:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return response.status_code == 206 and match is not None and int(match[1]) == have


def _require_hash(remote: RemoteFile, partial: Path) -> None:
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != remote.sha256 or partial.stat().st_size != remote.size:
        size = partial.stat().st_size
        partial.unlink()
        raise ModelFailure(
            "corrupt",
            f"What came from {httpx2.URL(remote.url).host} is not the expected file: {size:,} "
            f"bytes with sha256 {found}, not {remote.size:,} bytes with {remote.sha256}. "
            "It was removed.",
            "Try again; if it stays so, something on the way changes downloads (a proxy, a "
            "mirror).",
        )
