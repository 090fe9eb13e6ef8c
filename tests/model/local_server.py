"""A real HTTP server for downloads that go wrong, and what a hub and a package index answer."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER_COMMIT = "fedcba9876543210fedcba9876543210fedcba98"


@dataclass
class Served:
    """One address. cut_after: bytes after which the connection is closed, each time it is asked.

    statuses: given first, one a request, before the content. slow: seconds between 64 KiB pieces.
    """

    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    cut_after: int | None = None
    statuses: list[int] = field(default_factory=list)
    slow: float = 0.0


@dataclass(frozen=True)
class Asked:
    """One request that came. range: its Range header, or empty."""

    method: str
    path: str
    range: str
    headers: Message


class LocalServer:
    """Serves `served` on 127.0.0.1 until it is closed; `asked` is the log of requests."""

    def __init__(self) -> None:
        self.served: dict[str, Served] = {}
        self.asked: list[Asked] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_HEAD(self) -> None:
                outer._answer(self, body=False)

            def do_GET(self) -> None:
                outer._answer(self, body=True)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fetched(self, part: str) -> list[Asked]:
        """GET requests for addresses that contain this."""
        return [asked for asked in self.asked if asked.method == "GET" and part in asked.path]

    def _answer(self, handler: BaseHTTPRequestHandler, body: bool) -> None:
        path, _, _ = handler.path.partition("?")
        asked = Asked(
            handler.command, handler.path, handler.headers.get("Range", ""), handler.headers
        )
        self.asked.append(asked)
        served = self.served.get(path)
        if served is None or (body and served.statuses):
            status = served.statuses.pop(0) if served else 404
            handler.send_response(status)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        content, status = served.content, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", asked.range)
        begin = int(wanted[1]) if wanted and served.ranges else 0
        if begin:
            status = 206
            content = content[begin:]
        handler.send_response(status)
        for name, value in served.headers.items():
            handler.send_header(name, value)
        if begin:
            whole = len(served.content)
            handler.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if not body:
            return
        if served.cut_after is not None and len(content) > served.cut_after:
            handler.wfile.write(content[: served.cut_after])
            handler.close_connection = True
            return
        try:
            for start in range(0, len(content), 65536):
                handler.wfile.write(content[start : start + 65536])
                handler.wfile.flush()
                time.sleep(served.slow)
        except OSError:  # the client was killed
            handler.close_connection = True


def serve_repository(
    server: LocalServer, repository: str, files: dict[str, bytes], commit: str = COMMIT
) -> None:
    """Answer as a hub does for one repository: its listing with sizes, and each file.

    Files of 10 kB and more are large files there, with the sha256 as their ETag.
    """
    siblings = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        large = len(content) >= 10_000
        git_blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry = {"rfilename": name, "size": len(content), "blobId": git_blob}
        if large:
            entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
        siblings.append(entry)
        etag = digest if large else entry["blobId"]
        server.served[f"/{repository}/resolve/{commit}/{name}"] = Served(
            content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit}
        )
    listing = {
        "id": repository,
        "modelId": repository,
        "sha": commit,
        "siblings": siblings,
        "private": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
    }
    answer = Served(json.dumps(listing).encode(), {"Content-Type": "application/json"})
    server.served[f"/api/models/{repository}"] = answer
    server.served[f"/api/models/{repository}/revision/{commit}"] = answer


def repository_files(folder: Path) -> dict[str, bytes]:
    """A model folder's files, and what a repository often holds beside them."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return files | {
        "README.md": b"# A model",
        ".gitattributes": b"*.safetensors filter=lfs",
        "modeling_llama.py": b"raise SystemExit('never run')",
        "pytorch_model.bin": b"\x80\x04pickle" * 2000,
        "original/params.json": b"{}",
        "original/consolidated.00.pth": b"pickle" * 2000,
    }
