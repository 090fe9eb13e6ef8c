"""The server on 127.0.0.1: the page, its files, and one WebSocket for the terminal's bytes.

Over the WebSocket, binary messages are what the terminal and the app write; text messages are
JSON: `size` (columns, rows; and `light`, whether the system is) from the page, `ended`
(well, words, log) to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from aiohttp import WSMsgType, web

from minicpm5_mac import locations
from minicpm5_mac.web import page_files
from minicpm5_mac.web.guard import NO_TOKEN, TOKEN, WRONG_TOKEN, Guard, Refusal
from minicpm5_mac.web.page_files import PageFile
from minicpm5_mac.web.terminal_session import Ended, TerminalSession

log = logging.getLogger(__name__)

PASTE_BYTES = 16 * 1024 * 1024
"""The largest message a page may send: a paste comes as one."""

PING_SECONDS = 20.0
CLOSE_SECONDS = 2.0

OCCUPIED = 4409
"""WebSocket close code (4000 and above are an application's own): another page is attached."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one message in text that a page sends: its size in characters, and its colours."""

    size: tuple[int, int]
    light: bool = False


class ChatServer:
    """One terminal app behind one guarded address.

    command, environment: of the terminal app. focus: called where a second start asks the
    window to come to the front; see launcher/single_instance.py.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        focus: Callable[[], None] | None = None,
        focus_key: str = "",
    ) -> None:
        self._command = command
        self._environment = environment
        self._focus = focus
        self._focus_key = focus_key
        self._files = page_files.page_files()
        self._guard = Guard()
        self._runner: web.AppRunner | None = None
        self._session: TerminalSession | None = None
        self._farewells: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def session(self) -> TerminalSession:
        assert self._session is not None, "start comes first"
        return self._session

    @property
    def link(self) -> str:
        """The address that opens the chat, once."""
        return self._guard.link

    async def start(self) -> None:
        """Listen on a free port. Raises OSError where that is not possible."""
        application = web.Application(middlewares=[self._guarded])
        path = self._guard.path
        application.router.add_get(path, self._page)
        application.router.add_get(f"{path}terminal", self._terminal)
        application.router.add_get(f"{path}{{name:.+}}", self._file)
        application.router.add_post("/focus", self._to_front)
        self._session = TerminalSession(self._command, self._environment)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=CLOSE_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        self._guard.listen_at(self.port)

    async def close(self) -> None:
        """End the app, tell the page, stop listening. Idempotent."""
        if self._session is not None:
            await self._session.close()
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=CLOSE_SECONDS)
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await self._answer(request, handler)
        if not response.prepared:
            self._protect(response)
        return response

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        websocket = "upgrade" in request.headers.get("Connection", "").lower()
        refusal = self._guard.refuses_address(request.headers, websocket=websocket)
        if refusal is not None:
            return _refused(refusal)
        if request.path == "/focus":
            return await self._known_path(request, handler)
        token = request.query.get(TOKEN)
        # HEAD asks whether the page is there (link previews, `curl -I`): it opens nothing.
        opens = request.method == "GET" and request.path == self._guard.path and not websocket
        if token is not None and opens:
            if self._guard.spend_token(token):
                response = await handler(request)
                response.set_cookie(**self._guard.cookie)  # type: ignore[arg-type]
                return response
            if not self._guard.knows(request.cookies):
                return _refused(WRONG_TOKEN)
        if not self._guard.knows(request.cookies):
            return _refused(NO_TOKEN)
        return await self._known_path(request, handler)

    async def _known_path(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _refused(Refusal(error.status, "There is nothing at this address."))

    def _protect(self, response: web.StreamResponse) -> None:
        # Nothing of the page comes from elsewhere, and nothing of it goes elsewhere. xterm.js
        # writes its colours into a <style> of its own. Older WebKit does not count ws: as 'self'.
        websocket = self._guard.origin.replace("http:", "ws:")
        response.headers.update(
            {
                "Content-Security-Policy": (
                    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
                    f"img-src 'self' data:; connect-src 'self' {websocket}; "
                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
                ),
                "Cache-Control": "no-store",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
            }
        )

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return _response(page_files.page())

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = self._files.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        return _response(found)

    async def _to_front(self, request: web.Request) -> web.StreamResponse:
        given = (await request.content.read(1024)).decode(errors="replace")
        if self._focus is None or not _same_key(given, self._focus_key):
            raise web.HTTPForbidden
        self._focus()
        return web.Response(status=204)

    async def _terminal(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(heartbeat=PING_SECONDS, max_msg_size=PASTE_BYTES)
        if not socket.can_prepare(request).ok:
            raise web.HTTPBadRequest
        self._protect(socket)
        await socket.prepare(request)
        if not self.session.occupy(socket):
            await socket.close(code=OCCUPIED, message=b"another page shows this chat")
            return socket
        farewell = asyncio.create_task(self._say_the_end(socket))
        self._farewells.add(farewell)
        farewell.add_done_callback(self._farewells.discard)
        try:
            await self._converse(socket)
        finally:
            self.session.leave(socket)
            farewell.cancel()
        return socket

    async def _converse(self, socket: web.WebSocketResponse) -> None:
        attached = False
        async for message in socket:
            if message.type == WSMsgType.BINARY:
                self.session.typed(message.data)
            elif message.type == WSMsgType.TEXT:
                try:
                    told = msgspec.json.decode(message.data, type=Size)
                except msgspec.MsgspecError as error:
                    log.warning("not a size: %s", error)
                    continue
                if attached:
                    self.session.resize(*told.size)
                else:
                    attached = True
                    await self.session.attach(socket, *told.size, light=told.light)

    async def _say_the_end(self, socket: web.WebSocketResponse) -> None:
        ended = await asyncio.shield(self.session.ended)
        with contextlib.suppress(ConnectionError):
            await socket.send_str(end_message(ended))
            await socket.close()


def end_message(ended: Ended) -> str:
    """What the page is told when the app has ended."""
    return msgspec.json.encode(
        {"ended": {"well": ended.well, "words": ended.words, "log": str(locations.log_dir())}}
    ).decode()


def _same_key(given: str, key: str) -> bool:
    return bool(key) and hmac.compare_digest(given.encode(), key.encode())


def _refused(refusal: Refusal) -> web.Response:
    return _response(page_files.refused_page(refusal.reason), refusal.status)


def _response(file: PageFile, status: int = 200) -> web.Response:
    return web.Response(
        body=file.body, status=status, content_type=file.content_type, charset="utf-8"
    )
