"""Servers on pipes, in the real sandbox: what they can do, cannot do, and do wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from server_samples import HERE, SDK, raw, wait_until

from minicpm5_mac.mcp_servers import connection
from minicpm5_mac.mcp_servers import local as local_module
from minicpm5_mac.mcp_servers.servers import McpServers
from minicpm5_mac.sandbox.canary import Verdict


@pytest.fixture
def secret(own_home: Path, tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("a secret of the user's")
    return path


def test_a_server_of_the_sdk_does_its_work_and_nothing_beyond_its_grants(
    start, workspace, secret, tmp_path, monkeypatch
):
    """One server for all of it: it takes seconds to start."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-user-s")
    granted, kept = tmp_path / "granted", tmp_path / "kept"
    granted.mkdir()
    kept.mkdir()
    (kept / "a.txt").write_text("kept")
    (workspace / "notes.txt").write_text("notes")
    server = replace(SDK, env=(("LEVEL", "7"),), write=(granted,), read=(*SDK.read, kept))
    running = start(server)
    assert running.news == ()
    call = running.call

    # What it came to.
    assert call("echo", text="hi ä", times=2) == connection.McpAnswer("ok", "hi ä hi ä")
    failed = call("fail", why="so")
    assert (failed.outcome, failed.text.startswith("Error: ")) == ("error", True)
    assert failed.text.endswith("failed: so")
    assert call("echo", text=[1]).outcome == "error"  # the server checks what we do not
    assert call("echo").outcome == "error"
    assert '"sum": 3' in call("structured").text
    assert call("picture").text == "[image, image/png, 100 bytes, not shown]"
    assert call("noise") == connection.McpAnswer("ok", "quiet again")
    assert call("echo", text="half \ud800 a pair").text == "half ? a pair"

    # What it has.
    assert call("variable", name="LEVEL").text == "7"
    assert call("variable", name="OPENAI_API_KEY").text == "absent"
    assert call("look", path=str(workspace / "notes.txt")).text == "notes"
    assert call("look", path=str(kept / "a.txt")).text == "kept"
    assert call("put", path=str(granted / "b.txt"), text="b").outcome == "ok"
    assert (granted / "b.txt").read_text() == "b"

    # What it has not.
    for path in (secret, Path.home() / ".ssh", Path("/etc/shadow")):
        assert "FileNotFound" in call("look", path=str(path)).text
    for folder in (workspace, kept, tmp_path):
        answer = call("put", path=str(folder / "c.txt"), text="c")
        assert answer.outcome == "error"
        assert not (folder / "c.txt").exists()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        assert "Error" in call("connect", port=listener.getsockname()[1]).text
        with pytest.raises(TimeoutError):
            listener.accept()

    # Cancelling one call: at once for us, told to the server, and the next call works.
    began = time.monotonic()
    slow = running.servers.call(running["slow"], {"folder": str(granted)})
    wait_until((granted / "begun").exists)
    began = time.monotonic()
    threading.Timer(0.1, slow.cancel).start()
    assert slow.wait().outcome == "cancelled"
    assert time.monotonic() - began < 1
    wait_until((granted / "cancelled").exists)
    assert call("echo", text="after").text == "after"

    # Its end, in the middle of a call.
    answer = call("crash")
    assert answer.outcome == "error"
    assert "ended with status 3" in answer.text
    assert "about to crash" in answer.text
    assert "it is gone" in call("echo", text="still there?").text
    wait_until(lambda: bool(running.servers._news))
    (news,) = running.servers.news()
    assert "MCP server test is gone for this session: it ended with status 3" in news


def test_the_workspace_can_be_written_where_the_user_says_so(start, workspace):
    running = start(replace(SDK, workspace="write", tools=("put",)))
    assert running.call("put", path=str(workspace / "a.txt"), text="a").outcome == "ok"
    assert (workspace / "a.txt").read_text() == "a"
    assert running.call("put", path=str(workspace / ".git" / "config"), text="a").outcome == "error"
    running.servers.close()
    assert sorted(os.listdir(workspace)) == ["a.txt"]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (raw("dies at once"), ["ended with status 1", "it said: no licence found"]),
        (raw("old"), ["Unsupported protocol version"]),
        (raw("no list"), ["not of the form"]),
        (raw("garbage only"), ["it writes what is no MCP", "no MCP message: not json"]),
        (raw("x", command=("/no/such/program",)), ["status 127", "what `read` grants"]),
        (raw("x", read=(Path("/no/such/folder"),)), ["is not a folder"]),
        (raw("x", write=(Path("/usr"),)), ["belongs to the system"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else " ".join(value.command[-1:]),
)
def test_a_server_that_does_not_start_is_named_with_the_reason(start, server, words):
    began = time.monotonic()
    running = start(server, raw("ok", name="good"))
    assert time.monotonic() - began < 10
    assert [tool.name for tool in running.tools.values()] == ["good_act"]
    (news,) = running.news
    assert news.startswith("MCP server raw is not ")
    for word in words:
        assert word in news
    assert "Traceback" not in news
    assert "\x1b" not in news
    assert running.call("act").text == "acted ok"


def test_a_server_that_says_nothing_is_waited_for_and_given_up(start, monkeypatch, in_workspace):
    monkeypatch.setattr(connection, "START_SECONDS", 0.5)
    monkeypatch.setattr(local_module, "LAST_WORDS_SECONDS", 0.1)
    running = start(raw("says nothing"))
    assert running.tools == {}
    assert "no answer within 0.5 s" in running.news[0]
    wait_until(lambda: not in_workspace())


@pytest.mark.parametrize(
    ("how", "outcome", "words"),
    [
        ("garbage at first", "ok", "acted garbage at first"),
        ("wants more", "ok", "acted wants more"),
        ("endless list", None, ""),
        ("crashes", "error", "ended with status 1; it said: out of luck"),
        ("floods", "error", "messages that nobody asked for"),
        ("floods stderr", "error", "it wrote without an end"),
        ("one endless line", "error", "a message of more than 16 MiB"),
        ("answers wrongly", "error", "not of the form"),
        ("never answers", "limit", "no answer within 1 s"),
        ("closes", "limit", "no answer within 1 s"),
    ],
)
def test_what_a_server_does_wrong_in_a_call(start, how, outcome, words):
    limit = 1 if outcome == "limit" else 20
    running = start(raw(how, timeout=limit))
    if outcome is None:
        assert running.tools == {}
        assert running.news == ("MCP server raw has no tools.",)
        return
    answer = running.call("act")
    assert answer.outcome == outcome
    assert words in answer.text


def test_tools_stay_as_they_were_at_the_start_and_the_user_is_told_once(start):
    running = start(raw("changes"))
    before = running["act"].schema
    for _ in range(2):
        assert running.call("act").text == "acted changes"
    wait_until(lambda: bool(running.servers._news))
    (news,) = running.servers.news()
    assert "says that its tools changed" in news
    assert running.servers.tools[0].schema == before


def test_closing_ends_every_server_and_calls_that_come_later(start, in_workspace):
    running = start(raw("ok"), raw("never answers", name="other"))
    assert len(running.servers.tools) == 2
    assert in_workspace()
    waiting = running.servers.call(running["act"], {})
    running.servers.close()
    assert not in_workspace()
    assert waiting.wait().outcome in ("error", "cancelled")
    assert "were ended" in running.call("act").text
    running.servers.close()


def test_who_leaves_does_not_wait_for_a_server_that_is_starting(workspace, sandbox, in_workspace):
    servers = McpServers((raw("says nothing"),), workspace)
    starting = threading.Thread(target=servers.start, args=((),))
    starting.start()
    wait_until(in_workspace, 30)
    began = time.monotonic()
    servers.close()
    starting.join()
    assert time.monotonic() - began < 3
    assert servers.tools == ()
    assert not in_workspace()


def test_an_sdk_that_is_too_old_is_told(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "minicpm5_mac.mcp_servers.local", None)
    running = start(raw("ok"))
    assert running.tools == {}
    assert "`mcp`, 2.3 or newer" in running.news[0]
    assert "pip install 'minicpm5-mac[mcp]'" in running.news[0]


def test_nothing_is_started_where_the_sandbox_does_not_hold(start, monkeypatch, in_workspace):
    broken = Verdict(False, "2 of 22 sandbox probes went wrong")
    monkeypatch.setattr("minicpm5_mac.mcp_servers.servers.verdict", lambda policy: broken)
    running = start(raw("ok"))
    assert running.tools == {}
    assert running.news == ("MCP server raw is not started: 2 of 22 sandbox probes went wrong.",)
    assert not in_workspace()


APP = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from server_samples import raw
from minicpm5_mac.mcp_servers.servers import McpServers
servers = McpServers((raw(sys.argv[3]),), Path(sys.argv[2]))
assert servers.start(()), servers.news()
if sys.argv[4] == "end":
    sys.exit()
calling = servers.call(servers.tools[0], {})
print("calling", flush=True)
calling.wait()
"""


@pytest.mark.parametrize("way", ["killed", "end"])
def test_no_server_outlives_the_app(workspace, sandbox, in_workspace, way):
    paths = os.pathsep.join([str(HERE.parent / "fixtures"), *filter(None, sys.path)])
    arguments = [str(HERE), str(workspace), "never answers", way]
    with subprocess.Popen(
        [sys.executable, "-c", APP, *arguments],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    ) as app:
        assert app.stdout is not None
        if way == "killed":
            assert app.stdout.readline() == b"calling\n"
            assert in_workspace()
            os.kill(app.pid, signal.SIGKILL)
    wait_until(lambda: not in_workspace(), 2)
    assert not in_workspace()
