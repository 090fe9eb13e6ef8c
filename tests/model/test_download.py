"""A download goes on where it stopped, and ends whole or not at all."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from local_server import LocalServer, Served

from minicpm5_mac.events import DownloadProgress, Event
from minicpm5_mac.model import download
from minicpm5_mac.model.download import RemoteFile, fetch
from minicpm5_mac.model.failure import ModelFailure
from minicpm5_mac.model.progress import DownloadMeter

CONTENT = random.Random(1).randbytes(3_000_000)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.0)


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(follow_redirects=True, trust_env=False) as client:
        yield client


class Fetching:
    """One file, its place, and the events so far."""

    def __init__(self, server: LocalServer, client: httpx2.Client, folder: Path) -> None:
        self.target = folder / "file.bin"
        self.partial = folder / "file.bin.incomplete"
        self.events: list[Event] = []
        self._client = client
        self.remote = RemoteFile(
            f"{server.url}/file.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), {}
        )

    def run(self) -> None:
        meter = DownloadMeter("file", self.remote.size, self.events.append)
        fetch(self._client, self.remote, self.target, meter)

    def last(self) -> DownloadProgress:
        event = self.events[-1]
        assert isinstance(event, DownloadProgress)
        return event


@pytest.fixture
def fetching(server: LocalServer, client: httpx2.Client, tmp_path: Path) -> Fetching:
    server.served["/file.bin"] = Served(CONTENT)
    return Fetching(server, client, tmp_path)


def test_a_whole_file_arrives_and_is_reported(fetching: Fetching):
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT
    assert not fetching.partial.exists()
    assert fetching.last().done_bytes == fetching.last().total_bytes == len(CONTENT)


def test_half_a_file_is_gone_on_from(fetching: Fetching, server: LocalServer):
    fetching.partial.write_bytes(CONTENT[:1_234_567])
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT
    assert [asked.range for asked in server.asked] == ["bytes=1234567-"]


def test_a_connection_that_breaks_is_taken_up_again(fetching: Fetching, server: LocalServer):
    server.served["/file.bin"].cut_after = 1_000_000
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT
    assert [asked.range for asked in server.asked] == ["", "bytes=1000000-", "bytes=2000000-"]


def test_a_busy_server_is_asked_again(fetching: Fetching, server: LocalServer):
    server.served["/file.bin"].statuses = [503, 429, 500]
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT


def test_what_never_comes_leaves_the_part_that_came(fetching: Fetching, server: LocalServer):
    fetching.partial.write_bytes(CONTENT[:2_000_000])
    server.served["/file.bin"].statuses = [503] * 50
    with pytest.raises(ModelFailure, match="broke off after 2,000,000 of 3,000,000") as caught:
        fetching.run()
    assert caught.value.reason == "download"
    assert "goes on from there" in caught.value.advice
    assert fetching.partial.stat().st_size == 2_000_000
    assert not fetching.target.exists()


def test_a_server_without_ranges_begins_anew(fetching: Fetching, server: LocalServer):
    server.served["/file.bin"].ranges = False
    fetching.partial.write_bytes(b"x" * 1_000_000)
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT
    assert fetching.last().done_bytes == len(CONTENT)


def test_a_wrong_file_is_named_and_removed(fetching: Fetching):
    fetching.partial.write_bytes(b"x" * 1_000)  # the rest comes from the server
    with pytest.raises(ModelFailure, match="sha256") as caught:
        fetching.run()
    assert caught.value.reason == "corrupt"
    assert not fetching.partial.exists()
    assert not fetching.target.exists()
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_no_part_of_it(fetching: Fetching):
    fetching.partial.write_bytes(CONTENT + b"more")
    fetching.run()
    assert fetching.target.read_bytes() == CONTENT


def test_a_server_that_sends_too_much(fetching: Fetching, server: LocalServer):
    server.served["/file.bin"].content = CONTENT + b"more"
    with pytest.raises(ModelFailure) as caught:
        fetching.run()
    assert caught.value.reason == "corrupt"


def test_a_missing_file_is_an_answer_at_once(fetching: Fetching, server: LocalServer):
    server.served.clear()
    with pytest.raises(ModelFailure, match="HTTP 404") as caught:
        fetching.run()
    assert caught.value.reason == "download"
    assert len(server.asked) == 1


def test_nobody_there_is_offline(fetching: Fetching, server: LocalServer):
    server.close()
    with pytest.raises(ModelFailure, match=r"127\.0\.0\.1 cannot be reached") as caught:
        fetching.run()
    assert caught.value.reason == "offline"


def test_a_file_that_is_there_is_not_fetched(fetching: Fetching, server: LocalServer):
    fetching.target.write_bytes(CONTENT)
    fetching.run()
    assert server.asked == []
    assert fetching.last().done_bytes == len(CONTENT)


def test_a_disk_without_room_is_named_before_the_download(
    fetching: Fetching, server: LocalServer, monkeypatch: pytest.MonkeyPatch
):
    full = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(ModelFailure, match="free on the disk"):
        fetching.run()
    assert server.asked == []


def test_speed_and_time_left_follow_from_what_came():
    now = [0.0]
    events: list[Event] = []
    meter = DownloadMeter("m", 1_000, events.append, clock=lambda: now[0])
    meter.found(400)
    for _ in range(3):
        now[0] += 1.0
        meter.received(100)
    last = events[-1]
    assert isinstance(last, DownloadProgress)
    assert last.done_bytes == 700
    assert last.bytes_per_second == pytest.approx(100)  # what was found is no speed
    assert last.seconds_left == pytest.approx(3)


def test_many_small_pieces_make_few_events():
    events: list[Event] = []
    now = [0.0]
    meter = DownloadMeter("m", None, events.append, clock=lambda: now[0])
    for _ in range(1_000):
        now[0] += 0.001
        meter.received(1)
    assert 2 <= len(events) <= 6
