"""The files of the page: a fixed table, read once, so that nothing else can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

_HTML = "text/html"
_SCRIPT = "text/javascript"
_STYLE = "text/css"

PAGE = "page.html"
REFUSED = "refused.html"

_TYPES = {
    "page.css": _STYLE,
    "page.js": _SCRIPT,
    # xterm.js 6.0.0, addon-fit 0.11.0, addon-unicode11 0.9.0, addon-web-links 0.12.0 from npm
    # (@xterm/…), MIT: their licences lie beside them. Only the sourceMappingURL line is taken off.
    "xterm/xterm.js": _SCRIPT,
    "xterm/xterm.css": _STYLE,
    "xterm/addon-fit.js": _SCRIPT,
    "xterm/addon-unicode11.js": _SCRIPT,
    "xterm/addon-web-links.js": _SCRIPT,
}


@dataclass(frozen=True)
class PageFile:
    """What is sent for one name."""

    body: bytes
    content_type: str


def page_files() -> dict[str, PageFile]:
    """What the page loads, by its name in the page's folder."""
    return {name: PageFile(_read(name), kind) for name, kind in _TYPES.items()}


def page() -> PageFile:
    """The page itself."""
    return PageFile(_read(PAGE), _HTML)


def refused_page(reason: str) -> PageFile:
    """The page for who is refused; reason: our own words, a sentence."""
    return PageFile(_read(REFUSED).replace(b"{reason}", reason.encode()), _HTML)


def _read(name: str) -> bytes:
    return resources.files("minicpm5_mac.web").joinpath("static", *name.split("/")).read_bytes()
