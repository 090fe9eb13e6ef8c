"""Who may talk to our server: the page that was opened with the link, and nobody else.

Whoever reaches the terminal app can have commands run by it. Every page in the user's browser can
send requests to 127.0.0.1, so being local proves nothing. Checked on every request:

- Host is ours, word for word: a name that was made to resolve to 127.0.0.1 (DNS rebinding) is not.
- Origin, where there is one, is ours; a WebSocket must have one, as browsers always send it there.
- The link's token, which works once, or the cookie that it was exchanged for. The cookie is
  HttpOnly and SameSite=Strict. Cookies do not keep ports apart (RFC 6265, section 8.5), so its
  path is random too: another local server that the user visits is not sent it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

COOKIE = "minicpm5"
TOKEN = "t"


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered. status: of HTTP."""

    status: int
    reason: str


FOREIGN_HOST = Refusal(403, "This address is not the one the chat was opened at.")
FOREIGN_ORIGIN = Refusal(403, "Another page may not talk to the chat.")
NO_TOKEN = Refusal(403, "The chat opens only with the link it was started with.")
WRONG_TOKEN = Refusal(
    403, "This link is not valid: it works once. Use the page that it opened, or start again."
)


class Guard:
    """The secrets of one server. The token is forgotten when it is used."""

    def __init__(self) -> None:
        self.path = f"/{secrets.token_urlsafe(12)}/"
        self._token: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._host = ""

    def listen_at(self, port: int) -> None:
        """The port is known once the server listens."""
        self._host = f"127.0.0.1:{port}"

    @property
    def origin(self) -> str:
        """What a page of ours names as its origin."""
        return f"http://{self._host}"

    @property
    def link(self) -> str:
        """The address to open. It carries the token, so it works once."""
        return f"{self.origin}{self.path}?{TOKEN}={self._token}"

    @property
    def cookie(self) -> dict[str, str | bool]:
        """The cookie for whoever used the token, as arguments of `set_cookie`."""
        return {
            "name": COOKIE,
            "value": self._cookie,
            "path": self.path,
            "httponly": True,
            "samesite": "Strict",
        }

    def refuses_address(self, headers: Mapping[str, str], *, websocket: bool) -> Refusal | None:
        """Whether Host or Origin is not ours."""
        if headers.get("Host") != self._host:
            return FOREIGN_HOST
        origin = headers.get("Origin")
        if origin != self.origin and (websocket or origin is not None):
            return FOREIGN_ORIGIN
        return None

    def knows(self, cookies: Mapping[str, str]) -> bool:
        """Whether the request carries our cookie."""
        return _same(cookies.get(COOKIE, ""), self._cookie)

    def spend_token(self, given: str) -> bool:
        """Whether `given` is the token; from then on nothing is."""
        if self._token is None or not _same(given, self._token):
            return False
        self._token = None
        return True


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())
