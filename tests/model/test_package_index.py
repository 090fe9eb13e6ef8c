"""The index that pip or uv is set to is the one that is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from local_server import LocalServer, Served

from minicpm5_mac.model.package_index import (
    PYPI,
    find_file,
    index_settings,
    without_password,
)

PIP = (
    "[global]\nindex-url = https://mirror.example/simple/\nextra-index-url =\n  https://a/simple\n"
)
UV = """\
[[index]]
name = "ours"
url = "https://uv.example/simple"
default = true

[[index]]
url = "https://more.example/simple"
"""

SETTINGS = {
    "nothing set": ({}, {}, [PYPI]),
    "PIP_INDEX_URL": ({"PIP_INDEX_URL": "https://m/simple/"}, {}, ["https://m/simple", PYPI]),
    "PIP_EXTRA_INDEX_URL": (
        {"PIP_EXTRA_INDEX_URL": "https://a/s https://b/s"},
        {},
        [PYPI, "https://a/s", "https://b/s"],
    ),
    "pip.conf": ({}, {"pip/pip.conf": PIP}, ["https://mirror.example/simple", PYPI,
                                             "https://a/simple"]),
    "the environment before pip.conf": (
        {"PIP_INDEX_URL": "https://m/simple"},
        {"pip/pip.conf": PIP},
        ["https://m/simple", PYPI, "https://a/simple"],
    ),
    "UV_DEFAULT_INDEX": ({"UV_DEFAULT_INDEX": "https://u/simple"}, {}, ["https://u/simple", PYPI]),
    "UV_INDEX_URL": ({"UV_INDEX_URL": "https://u/simple"}, {}, ["https://u/simple", PYPI]),
    "UV_INDEX, one of them named": (
        {"UV_INDEX": "ours=https://u/simple https://v/simple"},
        {},
        [PYPI, "https://u/simple", "https://v/simple"],
    ),
    "uv.toml": ({}, {"uv/uv.toml": UV}, ["https://uv.example/simple", PYPI,
                                         "https://more.example/simple"]),
    "files that cannot be read are left out": (
        {},
        {"pip/pip.conf": "no section", "uv/uv.toml": "= broken"},
        [PYPI],
    ),
    "folders are no addresses": ({"PIP_EXTRA_INDEX_URL": "file:///opt/simple"}, {}, [PYPI]),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_indexes_in_the_order_they_are_asked(name: str, tmp_path: Path):
    environment, files, expected = SETTINGS[name]
    for place, text in files.items():
        path = tmp_path / ".config" / place
        path.parent.mkdir(parents=True)
        path.write_text(text)
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none"), **environment}
    environment["PIP_CONFIG_FILE"] = environment.get(
        "PIP_CONFIG_FILE", str(tmp_path / ".config/pip/pip.conf")
    )
    environment["UV_CONFIG_FILE"] = str(tmp_path / ".config/uv/uv.toml")
    assert list(index_settings(environment).indexes) == expected


def test_pip_is_told_to_read_no_file(tmp_path: Path):
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text(PIP)
    environment = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null", "UV_CONFIG_FILE": "none"}
    assert list(index_settings(environment).indexes) == [PYPI]


def test_the_certificates_are_pips(tmp_path: Path):
    bundle = tmp_path / "ours.pem"
    bundle.write_text("")
    environment = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    assert index_settings(environment).certificates is None
    assert index_settings(environment | {"PIP_CERT": str(bundle)}).certificates == str(bundle)


PAGES = {
    "JSON": (
        json.dumps({"files": [{"filename": "p-1.tar.gz", "url": "x"},
                              {"filename": "p-1-py3-none-any.whl", "url": "../../f/p.whl"}]}),
        "application/vnd.pypi.simple.v1+json",
    ),
    "HTML": (
        '<!DOCTYPE html><a href="x/p-1.tar.gz">p-1.tar.gz</a>'
        '<a href="../../f/p-1-py3-none-any.whl#sha256=00" data-requires-python="&gt;=3.9">p</a>',
        "text/html",
    ),
    "a page without the file": ("<html><a href='x/p-2.whl'>p-2.whl</a></html>", "text/html"),
    "JSON of another kind": ('{"files": 3}', "application/json"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_file_is_found_on_either_kind_of_page(name: str, server: LocalServer, tmp_path: Path):
    text, kind = PAGES[name]
    server.served["/simple/p/"] = Served(text.encode(), {"Content-Type": kind})
    with index_settings({"HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}).client() as client:
        url = find_file(client, f"{server.url}/simple", "p", "p-1-py3-none-any.whl")
        absent = find_file(client, f"{server.url}/simple", "q", "p-1-py3-none-any.whl")
    expected = {"JSON": "/f/p.whl", "HTML": "/f/p-1-py3-none-any.whl"}.get(name)
    assert url == (expected and server.url + expected)
    assert absent is None


def test_a_password_is_not_shown():
    assert without_password("https://me:secret@host:8443/simple") == "https://host:8443/simple"
