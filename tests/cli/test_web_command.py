"""`minicpm5-mac web` hands the flags of `chat` on as they were given."""

from __future__ import annotations

import argparse

import pytest

from minicpm5_mac.cli.main import build_parser
from minicpm5_mac.cli.web import chat_flags

FLAGS = [
    [],
    ["--model", "1b"],
    ["--model", "-odd name"],
    ["--thinking", "on"],
    ["--thinking", "off"],
    ["--thinking", "512"],
    ["--context", "4096", "--kv-bits", "auto", "--no-kernels"],
    ["--temperature", "0", "--top-p", "0.9", "--top-k", "0", "--seed", "7"],
    ["--system", "Answer in 中文; be brief.", "--max-tokens", "100"],
    ["--continue"],
    ["--resume", "4f2a"],
]


def parsed(command: str, flags: list[str]) -> argparse.Namespace:
    joined = [f"--model={flags[1]}"] if flags[:1] == ["--model"] else flags
    return build_parser().parse_args([command, *joined])


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_chat_understands_what_web_was_given(flags: list[str]):
    web = vars(parsed("web", flags))
    chat = vars(build_parser().parse_args(["chat", *chat_flags(argparse.Namespace(**web))]))
    own = {"run", "command", "no_open", "second"}
    assert {k: v for k, v in web.items() if k not in own} == {
        k: v for k, v in chat.items() if k in web and k not in own
    }
