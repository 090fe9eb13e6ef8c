"""Python package indexes: those the user's pip or uv is set to, and where a file of one lies.

Pages are read as PEP 691 JSON or PEP 503 HTML, whichever the index sends.
pip's settings: https://pip.pypa.io/en/stable/topics/configuration/; uv's:
https://docs.astral.sh/uv/reference/settings/ and /environment/.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import ssl
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx2

PYPI = "https://pypi.org/simple"

_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)


@dataclass(frozen=True)
class IndexSettings:
    """indexes: simple-repository addresses in the order to ask them. certificates: a CA bundle."""

    indexes: tuple[str, ...]
    certificates: str | None

    def client(self) -> httpx2.Client:
        """An HTTP client that trusts what the user's pip trusts. Close it."""
        verify: ssl.SSLContext | bool = True
        if self.certificates is not None:
            verify = ssl.create_default_context(cafile=self.certificates)
        return httpx2.Client(
            verify=verify, follow_redirects=True, timeout=httpx2.Timeout(30.0, connect=10.0)
        )


def index_settings(environment: Mapping[str, str] = os.environ) -> IndexSettings:
    """What pip and uv would ask: an index that replaces PyPI first, PyPI, then extra ones.

    Addresses that are not http or https are left out.
    """
    pip = _pip_settings(environment)
    uv_main, uv_extra = _uv_indexes(environment)
    main = [pip.get("index-url", ""), *uv_main]
    extra = [*pip.get("extra-index-url", "").split(), *uv_extra]
    indexes = dict.fromkeys(
        address.rstrip("/")
        for address in (*main, PYPI, *extra)
        if urlsplit(address).scheme in ("http", "https")
    )
    bundle = pip.get("cert") or environment.get("REQUESTS_CA_BUNDLE")
    return IndexSettings(tuple(indexes), bundle if bundle and Path(bundle).is_file() else None)


def find_file(client: httpx2.Client, index: str, project: str, file_name: str) -> str | None:
    """The address of a project's file in an index, or None where the index has not got it.

    Raises httpx2.HTTPError where the index cannot be asked.
    """
    response = client.get(f"{index}/{project}/", headers={"Accept": _ACCEPT})
    if response.status_code == 404:
        return None
    response.raise_for_status()
    for name, address in _links(response):
        if name == file_name:
            return urljoin(str(response.url), address)
    return None


def without_password(address: str) -> str:
    """An index address as it may be shown."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _links(response: httpx2.Response) -> Iterator[tuple[str, str]]:
    if "json" in response.headers.get("Content-Type", ""):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            for file in json.loads(response.text)["files"]:
                yield file["filename"], file["url"]
        return
    page = _SimplePage()
    page.feed(response.text)
    for address in page.addresses:
        yield unquote(urlsplit(address).path.rsplit("/", 1)[-1]), address.partition("#")[0]


class _SimplePage(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (address := dict(attrs).get("href")):
            self.addresses.append(address)


def _pip_settings(environment: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for path in _pip_files(environment):
        parser = configparser.RawConfigParser()
        # A file that pip itself could not read is no reason to stop here.
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read(path, encoding="utf-8")
        for section in ("global", "install", "download"):
            if parser.has_section(section):
                settings |= {k.replace("_", "-"): v for k, v in parser.items(section)}
    for key in ("index-url", "extra-index-url", "cert"):
        variable = "PIP_" + key.upper().replace("-", "_")
        if value := environment.get(variable):
            settings[key] = value
    return settings


def _pip_files(environment: Mapping[str, str]) -> Iterator[Path]:
    # Later files win, as in pip: the machine's, the user's, the environment's, the named one.
    chosen = environment.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    home = Path(environment.get("HOME") or Path.home())
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
        user = home / "Library/Application Support/pip/pip.conf"
        yield user if user.parent.is_dir() else home / ".config/pip/pip.conf"
    else:
        for folder in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":"):
            yield Path(folder) / "pip/pip.conf"
        yield Path("/etc/pip.conf")
        yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    yield home / ".pip/pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if chosen:
        yield Path(chosen)


def _uv_indexes(environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    main = [environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")]
    extra = [
        *environment.get("UV_INDEX", "").split(),
        *environment.get("UV_EXTRA_INDEX_URL", "").split(),
    ]
    for path in _uv_files(environment):
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        for table in (settings, _table(settings.get("pip"))):
            main.append(str(table.get("index-url", "")))
            extra += _texts(table.get("extra-index-url", []))
        for entry in settings.get("index", []):
            entry = _table(entry)
            (main if entry.get("default") else extra).append(str(entry.get("url", "")))
    # An index may have a name in front: name=https://…
    return [_unnamed(address) for address in main], [_unnamed(address) for address in extra]


def _uv_files(environment: Mapping[str, str]) -> Iterable[Path]:
    if chosen := environment.get("UV_CONFIG_FILE"):
        return [Path(chosen)]
    home = Path(environment.get("HOME") or Path.home())
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    shared = environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    return [
        own / "uv/uv.toml",
        *(Path(folder) / "uv/uv.toml" for folder in shared),
        Path("/etc/uv/uv.toml"),
    ]


def _unnamed(address: str) -> str:
    name, equals, rest = address.partition("=")
    return rest if equals and "/" not in name else address


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
