"""Models from a hub, through the command that users run, against a server that answers as one.

huggingface_hub reads its settings when it is imported, so each case is a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from local_server import (
    COMMIT,
    LATER_COMMIT,
    LocalServer,
    repository_files,
    serve_repository,
)

REPOSITORY = "someone/small-MLX"


@dataclass
class Hub:
    """The server, what it serves, and the command with its surroundings."""

    server: LocalServer
    files: dict[str, bytes]
    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HF_") and not name.lower().endswith("_proxy")
        }
        return kept | {
            "MINICPM5_MAC_HOME": str(self.folder / "home"),
            "HF_HOME": str(self.folder / "hf"),
            "HF_ENDPOINT": self.server.url,
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "minicpm5_mac", "models", *words],
            capture_output=True,
            text=True,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
        )

    def blobs(self) -> Path:
        return self.folder / "hf/hub" / f"models--{REPOSITORY.replace('/', '--')}" / "blobs"

    def weights(self) -> Path:
        digest = hashlib.sha256(self.files["model.safetensors"]).hexdigest()
        return self.blobs() / digest

    def served(self, name: str):
        return self.server.served[f"/{REPOSITORY}/resolve/{COMMIT}/{name}"]


@pytest.fixture
def hub(server: LocalServer, small_model: Path, tmp_path: Path) -> Hub:
    files = repository_files(small_model)
    serve_repository(server, REPOSITORY, files)
    return Hub(server, files, tmp_path)


def test_only_needed_files_are_fetched_and_then_no_network_is(hub: Hub):
    first = hub.run("pull", REPOSITORY)
    assert first.returncode == 0, first.stderr
    folder = Path(first.stdout.strip())
    assert {path.name for path in folder.iterdir()} == {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    for name in ("modeling_llama.py", "pytorch_model.bin", "original"):
        assert not hub.server.fetched(name)
    assert COMMIT[:12] in first.stderr
    assert "100 %" in first.stderr  # progress, in lines, where there is no terminal

    hub.server.close()
    script = (
        "from minicpm5_mac.model.resolve import resolve\n"
        f"m = resolve({REPOSITORY!r}, on_event=lambda e: None)\n"
        "print(m.path, m.revision, m.source)"
    )
    for more in ({}, {"HF_HUB_OFFLINE": "1"}):
        again = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=hub.environment(**more),
        )
        assert again.stdout.split() == [str(folder), COMMIT, "hub"], again.stderr


def test_the_commit_stays_until_pull_asks_again(hub: Hub):
    hub.run("pull", REPOSITORY)
    serve_repository(hub.server, REPOSITORY, hub.files, LATER_COMMIT)
    hub.server.asked.clear()
    listed = json.loads(hub.run("list", "--json").stdout)
    assert [(model["model"], model["revision"]) for model in listed] == [(REPOSITORY, COMMIT)]
    assert hub.run("path", REPOSITORY).stdout.strip().endswith(COMMIT)
    assert hub.server.asked == []

    newer = hub.run("pull", REPOSITORY)
    assert newer.stdout.strip().endswith(LATER_COMMIT)
    assert not hub.server.fetched("model.safetensors?")
    assert len(hub.server.fetched(f"{LATER_COMMIT}/model.safetensors")) == 0  # same content
    assert hub.run("path", REPOSITORY).stdout.strip().endswith(LATER_COMMIT)


def test_a_killed_download_is_resumed(hub: Hub):
    hub.served("model.safetensors").slow = 0.3
    command = [sys.executable, "-m", "minicpm5_mac", "models", "pull", REPOSITORY]
    partial = hub.weights().with_name(hub.weights().name + ".incomplete")
    process = subprocess.Popen(
        command, env=hub.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    came = partial.stat().st_size
    assert 0 < came < len(hub.files["model.safetensors"])

    hub.served("model.safetensors").slow = 0.0
    again = hub.run("pull", REPOSITORY)
    assert again.returncode == 0, again.stderr
    fetched = [
        asked.range
        for asked in hub.server.fetched("model.safetensors")
        if "index" not in asked.path
    ]
    assert fetched == ["", f"bytes={came}-"]
    assert hub.weights().read_bytes() == hub.files["model.safetensors"]


def test_a_half_fetched_model_is_not_taken_for_one(hub: Hub):
    hub.run("pull", REPOSITORY)
    hub.weights().unlink()
    hub.server.asked.clear()
    offline = hub.run("info", REPOSITORY, HF_HUB_OFFLINE="1")
    assert offline.returncode == 3
    assert "Traceback" not in offline.stderr
    assert hub.run("pull", REPOSITORY).returncode == 0
    assert hub.run("info", REPOSITORY).returncode == 0


def test_pull_repairs_what_was_damaged_since(hub: Hub):
    folder = Path(hub.run("pull", REPOSITORY).stdout.strip())
    whole = hub.files["model.safetensors"]
    hub.weights().write_bytes(whole[:-1000])
    (folder / "tokenizer_config.json").resolve().write_bytes(b"{" + b" " * 10)
    assert hub.run("info", REPOSITORY).returncode == 3
    assert hub.run("pull", REPOSITORY).returncode == 0
    assert hub.weights().read_bytes() == whole

    hub.weights().write_bytes(whole[:-1000] + bytes(1000))  # of the same size
    assert hub.run("pull", REPOSITORY).returncode == 0
    for name in ("model.safetensors", "tokenizer_config.json"):
        assert (folder / name).read_bytes() == hub.files[name]


def test_content_that_is_not_the_announced_one_is_named_and_removed(hub: Hub):
    served = hub.served("model.safetensors")
    served.content = bytes(len(served.content))
    failed = hub.run("pull", REPOSITORY)
    assert failed.returncode == 3
    assert "sha256" in failed.stderr
    assert not hub.weights().exists()


def failing(hub: Hub, name: str) -> subprocess.CompletedProcess[str]:
    """A pull that cannot work, in one of several ways."""
    config = json.loads(hub.files["config.json"])
    if name == "nobody there":
        hub.server.close()
    elif name == "offline by setting":
        return hub.run("pull", REPOSITORY, HF_HUB_OFFLINE="1")
    elif name == "no such repository":
        return hub.run("pull", "someone/nothing")
    elif name == "no name of a repository":
        return hub.run("pull", "some one/na me")
    elif name == "hub in trouble":
        hub.server.served[f"/api/models/{REPOSITORY}"].statuses = [500] * 20
    elif name == "GGUF files":
        serve_repository(hub.server, REPOSITORY, {"a.gguf": b"GGUF" * 4000, "README.md": b""})
    elif name == "PyTorch pickles":
        serve_repository(
            hub.server, REPOSITORY, {"config.json": b"{}", "pytorch_model.bin": b"x" * 20_000}
        )
    elif name == "another architecture":
        config |= {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    elif name == "code of its own":
        config |= {"auto_map": {"AutoModelForCausalLM": "modeling_llama.Model"}}
    elif name == "another packing":
        config.pop("quantization")
        config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    if "config.json" in hub.files and name in (
        "another architecture",
        "code of its own",
        "another packing",
    ):
        serve_repository(
            hub.server, REPOSITORY, hub.files | {"config.json": json.dumps(config).encode()}
        )
    return hub.run("pull", REPOSITORY)


FAILURES = {
    "nobody there": ["out of reach", "--model demo"],
    "offline by setting": ["HF_HUB_OFFLINE", "--model demo"],
    "no such repository": ["someone/nothing is not on 127.0.0.1"],
    "no name of a repository": ["no name of a hub repository"],
    "hub in trouble": ["HTTP 500", "--model demo"],
    "GGUF files": ["holds GGUF files", "models import"],
    "PyTorch pickles": ["pickle", "never loaded"],
    "another architecture": ["qwen3", "LlamaForCausalLM"],
    "code of its own": ["auto_map", "never does"],
    "another packing": ["gptq", "MLX"],
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_cannot_be_fetched_is_named_before_the_weights_are(name: str, hub: Hub):
    failed = failing(hub, name)
    assert failed.returncode == 3
    for part in FAILURES[name]:
        assert part in failed.stderr
    assert "Traceback" not in failed.stderr
    assert failed.stdout == ""
    assert not hub.server.fetched("model.safetensors")


def test_removing_a_model_leaves_no_file_of_it_and_no_other_model(hub: Hub):
    serve_repository(hub.server, "other/model", hub.files)
    for repository in (REPOSITORY, "other/model"):
        assert hub.run("pull", repository).returncode == 0
    unasked = hub.run("remove", REPOSITORY)
    assert unasked.returncode == 2
    assert hub.weights().exists()
    assert hub.run("remove", REPOSITORY, "--yes").returncode == 0
    assert not hub.blobs().exists()
    listed = json.loads(hub.run("list", "--json").stdout)
    assert [model["model"] for model in listed] == ["other/model"]
