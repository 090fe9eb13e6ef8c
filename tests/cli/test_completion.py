"""Completion scripts, run by the shells themselves against the command line as it is."""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from minicpm5_mac.cli.command_tree import Command, command_tree
from minicpm5_mac.cli.completion_scripts import bash_script, fish_script, zsh_script
from minicpm5_mac.cli.main import build_parser, main

SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: apt install {name}, or brew install {name}")
    return found


def sample_parser() -> argparse.ArgumentParser:
    """Everything a command line of ours may have, with words that shells stumble over."""
    parser = argparse.ArgumentParser(prog="minicpm5-mac")
    parser.add_argument("--version", action="version", version="0")
    commands = parser.add_subparsers()
    chat = commands.add_parser("chat", help="talk: it's a model's \"job\" (100 %% local) $HOME `x`")
    chat.add_argument("--thinking", metavar="on|off|N", help="tokens [to] think: on, off, or N")
    chat.add_argument("--theme", choices=("dark", "light"))
    chat.add_argument("--system-file", "-f", metavar="FILE")
    chat.add_argument("--json", action="store_true")
    chat.add_argument("--secret", help=argparse.SUPPRESS)
    store = commands.add_parser("conversations", help="stored ones").add_subparsers()
    store.add_parser("list", help="all of them").add_argument("--limit", type=int)
    store.add_parser("delete", help="for good")
    commands.add_parser("completion").add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


# What a cursor behind each beginning must be offered, and what it must not.
CASES = {
    "ch": ({"chat"}, {"conversations"}),
    "co": ({"conversations", "completion"}, {"chat"}),
    "--ver": ({"--version"}, {"chat"}),
    "conversations ": ({"list", "delete"}, {"chat", "--json"}),
    "conversations li": ({"list"}, {"delete"}),
    "conversations list --li": ({"--limit"}, {"list"}),
    "conversations delete ": (set(), {"list", "delete"}),
    "chat --th": ({"--thinking", "--theme"}, {"--json", "--secret"}),
    "chat --json --j": ({"--json"}, {"--theme"}),
    "chat --theme ": ({"dark", "light"}, {"--json"}),
    "chat --theme d": ({"dark"}, {"light"}),
    "completion ": ({"bash", "zsh", "fish"}, {"list"}),
    "completion f": ({"fish"}, {"bash"}),
}


@pytest.mark.parametrize("typed", CASES)
def test_bash_offers_what_fits(typed: str, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text(bash_script(command_tree(sample_parser())))
    ask = (
        f"source {script}; COMP_WORDS=(minicpm5-mac {typed}{' ' if typed[-1] != ' ' else ''}"
        f"{chr(34) * 2 if typed[-1] == ' ' else ''}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        '_minicpm5_mac; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    run = subprocess.run(
        [shell("bash"), "--norc", "-c", ask], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.stderr == ""
    offered = set(run.stdout.split())
    wanted, unwanted = CASES[typed]
    assert wanted <= offered
    assert not unwanted & offered


@pytest.mark.parametrize("typed", CASES)
def test_fish_offers_what_fits(typed: str, tmp_path: Path):
    script = tmp_path / "script.fish"
    script.write_text(fish_script(command_tree(sample_parser())))
    run = subprocess.run(
        [
            shell("fish"),
            "--no-config",
            "-c",
            f"source {script}; complete -C 'minicpm5-mac {typed}'",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert run.stderr == ""
    offered = {line.split("\t")[0] for line in run.stdout.splitlines()}
    wanted, unwanted = CASES[typed]
    assert wanted <= offered
    assert not unwanted & offered


@pytest.mark.parametrize("typed", CASES)
def test_zsh_offers_what_fits(typed: str, zsh_offers: dict[str, set[str]]):
    wanted, unwanted = CASES[typed]
    assert wanted <= zsh_offers[typed]
    assert not unwanted & zsh_offers[typed]


# Calls that only measure (-O, -A, -D) go through; of the others, what matches is written down.
ASK_ZSH = """\
PS1='READY> '
autoload -Uz compinit; compinit -u -d {folder}/dump
source {script}
compadd() {{
  if [[ "${{@[1,(i)(-|--)]}}" != *-(O|A|D)\\ * ]]; then
    local -a hits
    builtin compadd -O hits "$@"
    print -rl -- $hits >> {folder}/offers
  fi
  builtin compadd "$@"
}}
report() {{
  _main_complete
  compstate[insert]='' compstate[list]=''
  print -- -done- >> {folder}/offers
}}
zle -C report complete-word report
bindkey '^T' report
"""


@pytest.fixture(scope="module")
def zsh_offers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What one zsh on a terminal adds for each beginning, when the completion key is pressed."""
    zsh = shell("zsh")
    folder = tmp_path_factory.mktemp("zsh")
    script, offers = folder / "script.zsh", folder / "offers"
    script.write_text(zsh_script(command_tree(sample_parser())))
    (folder / ".zshrc").write_text(ASK_ZSH.format(folder=folder, script=script))
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(ZDOTDIR=str(folder), TERM="xterm", HOME=str(folder))
        os.chdir(folder)
        os.execv(zsh, [zsh, "-d", "-i"])
    try:
        read_until(terminal, b"READY> ")
        return {typed: press_key(terminal, typed, offers) for typed in CASES}
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def press_key(terminal: int, typed: str, offers: Path) -> set[str]:
    """Type a line, press Control-T, wait for what is written down, and clear the line."""
    offers.write_text("")
    os.write(terminal, f"minicpm5-mac {typed}\x14".encode())
    end = time.monotonic() + 30
    while "-done-" not in offers.read_text() and time.monotonic() < end:
        drain(terminal)
    found = set(offers.read_text().split())
    assert "-done-" in found
    os.write(terminal, b"\x15")
    return found


def read_until(terminal: int, mark: bytes) -> None:
    seen = b""
    end = time.monotonic() + 30
    while mark not in seen and time.monotonic() < end:
        seen += drain(terminal)
    assert mark in seen


def drain(terminal: int) -> bytes:
    readable, _, _ = select.select([terminal], [], [], 0.05)
    return os.read(terminal, 65536) if readable else b""


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_real_command_line_gives_a_script_its_shell_can_read(name: str, capsys):
    assert main(["completion", name]) == 0
    script = capsys.readouterr().out
    run = subprocess.run(
        [shell(name), "-n", "/dev/stdin"], input=script, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_every_command_and_option_of_the_real_command_line_is_in_every_script():
    tree = command_tree(build_parser())
    assert Command((), "", tree[0].options, (), False) == tree[0]
    words = {word for command in tree for word in command.path}
    options = {name for c in tree for option in c.options for name in option.names}
    assert {"chat", "conversations", "list", "completion"} <= words
    assert {"--help", "--version"} <= options
    for script in (bash_script(tree), zsh_script(tree)):
        assert not [word for word in words | options if word not in script]
    fish = fish_script(tree)
    for option in options:
        bare = option.lstrip("-")
        assert re.search(rf"-[ls] {re.escape(bare)}\b", fish)
