"""However a served chat ends, none of its processes is left; however often its page goes, all are.

The processes are real: the command, the terminal app, the model process with the tiny model.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from served_chat import ServedChat, SocketPage, socket_page, wait_until

from minicpm5_mac.launcher.own_python import chat_command, own_environment
from minicpm5_mac.web.app_process import AppProcess

Serve = Callable[..., ServedChat]


def is_ready(page: SocketPage) -> bool:
    """The app is drawn, and has started its model process."""
    return b"MiniCPM5" in page.screen


def ended(page: SocketPage) -> bool:
    return any("ended" in message for message in page.messages)


async def test_interrupted(serve: Serve):
    chat = serve()
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(is_ready)
        chat.model_process()
        chat.popen.send_signal(signal.SIGINT)
        await page.until(ended)
    chat.none_left()
    assert chat.popen.returncode == 130


async def test_server_killed(serve: Serve):
    chat = serve()
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(is_ready)
        chat.model_process()
        chat.popen.kill()
    chat.none_left()


async def test_app_killed_is_told_on_the_page_and_by_the_command(serve: Serve):
    chat = serve()
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(is_ready)
        chat.model_process()
        chat.app().kill()
        await page.until(ended)
    chat.none_left()
    said = page.messages[-1]["ended"]
    assert isinstance(said, dict)
    assert not said["well"]
    assert said["log"]
    _, error = chat.popen.communicate()
    assert chat.popen.returncode == 1
    assert "What was said is kept" in error
    assert "Traceback" not in error


async def test_model_process_killed_is_the_apps_business_and_leaving_it_ends_all(serve: Serve):
    chat = serve()
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(is_ready)
        model = chat.model_process()
        model.kill()
        await page.until(lambda page: b"model process" in page.screen)
        assert chat.app().is_running()
        await page.type("\x11")  # ctrl+q
        await page.until(ended)
    chat.none_left()
    assert page.messages[-1]["ended"]["well"]  # type: ignore[index]
    assert chat.popen.returncode == 0


async def test_ten_reloads_keep_the_app_and_the_model_and_draw_all_again(serve: Serve):
    chat = serve()
    cookie = chat.spend_link()
    async with socket_page(chat.page, cookie) as page:
        await page.until(is_ready)
        app, model = chat.app(), chat.model_process()
        await page.type("kept words")
        await page.until(lambda page: b"kept words" in page.screen)
    for _ in range(10):
        async with socket_page(chat.page, cookie) as page:
            await page.until(lambda page: b"kept words" in page.screen and is_ready(page))
            assert page.screen.startswith(b"\x1b[?")  # the modes come first
            assert b"\x1b[?1049h" in page.screen
    assert (chat.app(), chat.model_process()) == (app, model)
    chat.popen.terminate()
    chat.none_left()


async def test_a_failure_at_the_start_is_readable_on_the_page(serve: Serve):
    chat = serve("--resume", "nosuchid")
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(ended)
    said = page.messages[-1]["ended"]
    assert isinstance(said, dict)
    assert "nosuchid" in said["words"]
    assert "\x1b" not in said["words"]
    chat.none_left()
    assert chat.popen.returncode == 1


async def test_a_second_command_says_where_the_model_is_loaded(serve: Serve):
    chat = serve()
    second = subprocess.run(
        [sys.executable, "-m", "minicpm5_mac", "web", "--no-open"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == 1
    assert "in a browser" in second.stderr
    assert str(chat.popen.pid) in second.stderr
    chat.popen.terminate()
    chat.none_left()
    again = serve()  # the lock went with its holder
    assert again.popen.poll() is None


async def test_a_chat_beside_it_says_where_the_first_is_and_the_one_in_the_page_says_nothing(
    serve: Serve, tiny_model: Path
):
    chat = serve()
    async with socket_page(chat.page, chat.spend_link()) as page:
        await page.until(is_ready)
        screen: list[bytes] = []
        words = (b"memory", b"browser", b"second")  # of a notice whose lines are folded
        command = chat_command("--model", str(tiny_model))
        beside = AppProcess(command, own_environment(), 200, 30, screen.append, lambda _: None)
        try:
            wait_until(lambda: all(word in b"".join(screen) for word in words), "the notice")
        finally:
            beside.end()
        await page.type("\x11")
        await page.until(ended)
    assert not all(word in page.screen for word in words)
    chat.none_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_no_page_ever_opened_just_ends(serve: Serve, number: signal.Signals):
    chat = serve()
    chat.popen.send_signal(number)
    wait_until(lambda: chat.popen.poll() is not None, "the server's end")
    assert chat.popen.returncode == 130
