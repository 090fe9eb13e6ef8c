"""Who is refused: everybody but the page that was opened by the link."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiohttp
import pytest

from minicpm5_mac.web.guard import COOKIE
from minicpm5_mac.web.server import ChatServer


@pytest.fixture
async def server() -> AsyncIterator[ChatServer]:
    """Guards a program that echoes what is typed."""
    server = ChatServer(("/bin/cat",), {})
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that keeps no cookie but those a test gives it."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield client


def page_of(server: ChatServer) -> str:
    return server.link.partition("?")[0]


def origin_of(server: ChatServer) -> str:
    return "http://" + urlsplit(server.link).netloc


async def cookie_of(server: ChatServer, client: aiohttp.ClientSession) -> str:
    async with client.get(server.link) as answer:
        assert answer.status == 200
        return f"{COOKIE}={answer.cookies[COOKIE].value}"


async def test_the_link_gives_a_cookie_that_no_script_and_no_other_site_can_use(server, client):
    async with client.get(server.link) as answer:
        assert answer.status == 200
        assert "text/html" in answer.headers["Content-Type"]
        given = answer.cookies[COOKIE]
    assert given["httponly"]
    assert given["samesite"] == "Strict"
    assert given["path"] == urlsplit(server.link).path != "/"


async def test_a_reload_goes_by_the_cookie(server, client):
    cookie = await cookie_of(server, client)
    async with client.get(page_of(server), headers={"Cookie": cookie}) as answer:
        assert answer.status == 200


async def test_the_link_works_once(server, client):
    link = server.link
    await cookie_of(server, client)
    async with client.get(link) as answer:
        assert answer.status == 403
        assert COOKIE not in answer.cookies
        assert "works once" in await answer.text()


async def test_a_look_at_the_link_without_opening_it_does_not_spend_it(server, client):
    async with client.head(server.link) as answer:
        assert answer.status == 403
        assert COOKIE not in answer.cookies
    await cookie_of(server, client)


@pytest.mark.parametrize("token", ["", "wrong", "None", "é"])
async def test_another_token_is_refused_and_does_not_spend_the_link(server, client, token):
    async with client.get(page_of(server), params={"t": token}) as answer:
        assert answer.status == 403
    await cookie_of(server, client)


@pytest.mark.parametrize("name", ["", "page.js", "xterm/xterm.js", "terminal", "static/"])
async def test_nothing_is_served_without_token_or_cookie(server, client, name):
    async with client.get(page_of(server) + name) as answer:
        assert answer.status == 403
    async with client.get(page_of(server) + name, headers={"Cookie": f"{COOKIE}=x"}) as answer:
        assert answer.status == 403


@pytest.mark.parametrize(
    "name", ["static/", "xterm/", "../page_files.py", "%2e%2e/guard.py", "page.html", "etc"]
)
async def test_nothing_is_listed_and_only_the_pages_own_files_are_there(server, client, name):
    cookie = await cookie_of(server, client)
    async with client.get(page_of(server) + name, headers={"Cookie": cookie}) as answer:
        assert answer.status in (403, 404)
        assert "guard" not in await answer.text()


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}."]
)
async def test_another_host_is_refused_even_with_the_token(server, client, host):
    headers = {"Host": host.format(port=server.port)}
    async with client.get(server.link, headers=headers) as answer:
        assert answer.status == 403
    await cookie_of(server, client)


FOREIGN = ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:{port}", ""]


@pytest.mark.parametrize("origin", FOREIGN)
async def test_another_origin_is_refused_even_with_the_cookie(server, client, origin):
    headers = {"Origin": origin.format(port=server.port), "Cookie": await cookie_of(server, client)}
    async with client.get(page_of(server), headers=headers) as answer:
        assert answer.status == 403


@pytest.mark.parametrize("origin", [*FOREIGN, None])
async def test_a_websocket_of_another_origin_or_of_none_is_refused(server, client, origin):
    headers = {"Cookie": await cookie_of(server, client)}
    if origin is not None:
        headers["Origin"] = origin.format(port=server.port)
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(page_of(server) + "terminal", headers=headers)
    assert refused.value.status == 403
    assert server.session.pid is None


@pytest.mark.parametrize("path", ["/", "/terminal", "/ws", "{page}terminal", "{page}?t={token}"])
async def test_a_websocket_straight_to_the_port_is_refused(server, client, path):
    parts = urlsplit(server.link)
    address = origin_of(server) + path.format(page=parts.path, token=parts.query[2:])
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect(address, headers={"Origin": origin_of(server)})
    assert refused.value.status == 403
    assert server.session.pid is None


async def test_a_second_page_is_refused_while_one_is_attached_and_welcome_after(server, client):
    headers = {"Cookie": await cookie_of(server, client), "Origin": origin_of(server)}
    address = page_of(server) + "terminal"
    async with client.ws_connect(address, headers=headers) as first:
        await first.send_str('{"size": [80, 24]}')
        await first.send_bytes(b"hello")
        assert (await first.receive()).data == b"hello"
        async with client.ws_connect(address, headers=headers) as second:
            assert (await second.receive()).type == aiohttp.WSMsgType.CLOSE
            assert second.close_code == 4409
        await first.send_bytes(b" again")
        assert (await first.receive()).data == b" again"
    async with client.ws_connect(address, headers=headers) as third:
        await third.send_str('{"size": [80, 24]}')
        await third.send_bytes(b"third")
        while b"third" not in (message := await third.receive()).data:
            assert message.type == aiohttp.WSMsgType.BINARY


@pytest.mark.parametrize("known", [True, False])
async def test_every_answer_forbids_the_page_to_load_or_send_elsewhere(server, client, known):
    headers = {"Cookie": await cookie_of(server, client)} if known else {}
    for name in ("", "page.js", "nothing"):
        async with client.get(page_of(server) + name, headers=headers) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("message", ["", "{}", '{"size": [80]}', '{"size": "x"}', "null", "[1, 2"])
async def test_a_message_that_is_no_size_changes_nothing(server, client, message):
    headers = {"Cookie": await cookie_of(server, client), "Origin": origin_of(server)}
    async with client.ws_connect(page_of(server) + "terminal", headers=headers) as socket:
        await socket.send_str(message)
        await socket.send_str('{"size": [1000000, 0]}')  # bounded, not refused
        await socket.send_bytes(b"here")
        assert (await socket.receive()).data == b"here"


async def test_only_who_has_the_key_may_ask_for_the_window():
    asked: list[str] = []
    server = ChatServer(("/bin/cat",), {}, lambda: asked.append("focus"), "the key")
    await server.start()
    try:
        async with aiohttp.ClientSession(origin_of(server)) as client:
            for key, status in (("", 403), ("another", 403), ("the key", 204)):
                async with client.post("/focus", data=key) as answer:
                    assert answer.status == status
            evil = {"Origin": "https://evil.example"}
            async with client.post("/focus", data="the key", headers=evil) as answer:
                assert answer.status == 403
    finally:
        await server.close()
    assert asked == ["focus"]
