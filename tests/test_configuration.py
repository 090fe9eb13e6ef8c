"""The configuration file: defaults, mistakes named by line, and the one table of keys."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicpm5_mac import locations
from minicpm5_mac.configuration.configuration import DEFAULTS, AppConfiguration, Configuration
from minicpm5_mac.configuration.keys import KEYS, MCP_KEYS, TABLES
from minicpm5_mac.configuration.reading import load_configuration, parse_configuration
from minicpm5_mac.configuration.table import markdown_table, shown_as_toml
from minicpm5_mac.failure import Failure
from minicpm5_mac.mcp_servers.server import McpServer, chosen_servers
from minicpm5_mac.request import Sampling

FULL = """\
model = "demo"
system_prompt = "Be brief."
thinking = 256
max_tokens = 2048
context = 8192
kv_bits = 8
when_full = "shorten"
keep_reasoning = false
[sampling]
temperature = 1
top_p = 0.95
min_p = 0.05
top_k = 40
repetition_penalty = 1.1
seed = 7
[app]
theme = "light"
linear = true
bell = true
copy_on_select = true
[prompts]
"Code review" = "You review code."
[mcp.files]
command = ["files-server", ""]
env = { LEVEL = "1" }
read = ["/data"]
write = ["~/out"]
workspace = "write"
tools = ["read", "list"]
timeout = 5
[mcp.web]
url = "https://example.org/mcp"
headers = { X-Team = "a" }
token_from = "WEB_TOKEN"
unattended = true
"""


def test_every_key_is_read():
    configuration, problems = parse_configuration(FULL.encode())
    assert problems == ()
    assert configuration == Configuration(
        model="demo",
        system_prompt="Be brief.",
        thinking=256,
        max_tokens=2048,
        context=8192,
        kv_bits=8,
        when_full="shorten",
        keep_reasoning=False,
        sampling=Sampling(1.0, 0.95, 0.05, 40, 1.1, 7),
        app=AppConfiguration("light", True, True, True),
        prompts={"Code review": "You review code."},
        mcp={
            "files": McpServer(
                "files",
                command=("files-server", ""),
                env=(("LEVEL", "1"),),
                read=(Path("/data"),),
                write=(Path("~/out").expanduser(),),
                workspace="write",
                tools=("read", "list"),
                timeout=5,
            ),
            "web": McpServer(
                "web",
                url="https://example.org/mcp",
                headers=(("X-Team", "a"),),
                token_from="WEB_TOKEN",
                unattended=True,
            ),
        },
    )
    named = {key.name for key in KEYS}
    document = tomllib.loads(FULL)
    written = {name for name in document if name not in TABLES}
    written |= {f"{table}.{name}" for table in ("sampling", "app") for name in document[table]}
    assert written == named


def test_the_typed_form_has_exactly_the_keys_of_the_table():
    fields = {field.name for field in dataclasses.fields(Configuration)} - set(TABLES)
    fields |= {f"sampling.{name}" for name in Sampling.__struct_fields__}
    fields |= {f"app.{field.name}" for field in dataclasses.fields(AppConfiguration)}
    assert fields == {key.name for key in KEYS}


def test_a_missing_file_means_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(locations.HOME_VARIABLE, str(tmp_path))
    assert load_configuration() == DEFAULTS
    assert DEFAULTS.thinking is None
    assert DEFAULTS.sampling == Sampling()


@pytest.mark.parametrize(("written", "thinking"), [('"on"', None), ('"off"', 0), ("64", 64)])
def test_thinking_is_on_off_or_a_budget(written: str, thinking: int | None):
    configuration, problems = parse_configuration(f"thinking = {written}".encode())
    assert (configuration.thinking, problems) == (thinking, ())


MISTAKES = {
    "misspelt key": ('\n# x\nmodle = "demo"\n', 3, ["'modle'", "did you mean 'model'", "kv_bits"]),
    "key of another table": ("temperature = 1\n", 1, ["'temperature' in [sampling]"]),
    "top key in a table": ('[app]\nmodel = "demo"\n', 2, ["'model' at the top", "theme"]),
    "misspelt table": ("[smpling]\ntop_k = 1\n", 1, ["did you mean [sampling]"]),
    "nothing near": ("zzzz = 1\n", 1, ["unknown key 'zzzz'; keys at the top: model"]),
    "bad choice": ('kv_bits = 3\nmodel = "x"\n', 1, ["kv_bits", '16, 8, 4 or "auto"', "not 3"]),
    "true is no number": ("kv_bits = true\n", 1, ["not true"]),
    "wrong type": ('[app]\n\nlinear = "yes"\n', 3, ["true or false", 'not "yes"']),
    "out of bounds": ("[sampling]\ntop_p = 1.5\n", 2, ["from 0 to 1", "not 1.5"]),
    "not a number": ("[sampling]\ntemperature = nan\n", 2, ["from 0 to 5", "not nan"]),
    "no thinking of that kind": ('thinking = "maybe"\n', 1, ['"on", "off"', 'not "maybe"']),
    "thinking is no switch": ("thinking = true\n", 1, ['"on", "off"', "not true"]),
    "a value for a table": ("sampling = 3\n", 1, ["write [sampling] on a line of its own"]),
    "a table for a value": ("[model]\nname = 1\n", 1, ["text in quotes", "a table"]),
    "empty prompt": ('[prompts]\nA = "a"\nB = ""\n', 3, ["prompts.B"]),
    "behind a long string": ('system_prompt = """\na\nbell = 1\n"""\nbell = 1\n', 5, ["[app]"]),
    "a long string itself": ('theme = """\na\n"""\n', 1, ["'theme' in [app]"]),
    "inline table": ("app = { theme = 'dark', bel = true }\n", 1, ["'bell'"]),
    "dotted": ("app.theme = 'dark'\napp.linear = 1\n", 2, ["app.linear"]),
    "an MCP server of nothing": ("[mcp.x]\ntimeout = 1\n", 1, ["neither command nor url"]),
    "an MCP server of both": (
        '[mcp.x]\ncommand = ["a"]\nurl = "https://a.example"\n',
        1,
        ["both command and url"],
    ),
    "a misspelt key of a server": (
        '[mcp.x]\ncommand = ["a"]\nred = ["/a"]\n',
        3,
        ["'red' (did you mean 'read'?)", "keys in [mcp.x]: command, env"],
    ),
    "a command is a list": ('[mcp.x]\ncommand = "a b"\n', 2, ["a list of words", 'not "a b"']),
    "an empty command": ('[mcp.x]\ncommand = [""]\n', 2, ["a list of words"]),
    "folders have to be certain": ('[mcp.x]\ncommand = ["a"]\nread = ["b"]\n', 3, ["~/"]),
    "a variable that is none": (
        '[mcp.x]\ncommand = ["a"]\n\nenv = { "A B" = "1" }\n',
        4,
        ["a table of variables"],
    ),
    "a header that is two": (
        '[mcp.x]\nurl = "https://a.example"\nheaders = { A = "1\\nB: 2" }\n',
        3,
        ["a table of HTTP headers"],
    ),
    "a folder for an address": (
        '[mcp.x]\nurl = "https://a.example"\nwrite = ["/a"]\n',
        3,
        ["mcp.x.write is not for a server with url"],
    ),
    "plain http to elsewhere": (
        '[mcp.x]\nurl = "http://a.example/mcp"\n',
        2,
        ['"https://…" address', "of this machine", 'not "http://a.example/mcp"'],
    ),
    "an address with a password": ('[mcp.x]\nurl = "https://u:p@a.example"\n', 2, ["https://"]),
    "no address at all": ('[mcp.x]\nurl = "https://[::1"\n', 2, ["https://"]),
    "a server without a table": ("[mcp]\nx = 1\n", 2, ["write [mcp.x]"]),
    "no table of servers": ("mcp = 1\n", 1, ["write [mcp.NAME] on a line of its own"]),
    "a server with the name of all": ('[mcp.all]\ncommand = ["a"]\n', 1, ["is no name"]),
    "a server with a long name": ('[mcp."a b"]\ncommand = ["a"]\n', 1, ["is no name", "at most"]),
    "a wrong time": ('[mcp.x]\ncommand = ["a"]\ntimeout = 601\n', 3, ["from 1 to 600"]),
    "syntax": ('model = "demo"\nthinking = \n', 2, ["not TOML"]),
    "syntax at the end": ("model = [1,\n2\n\n", 2, ["not TOML", "unclosed array"]),
    "twice": ('model = "a"\nmodel = "b"\n', 2, ["not TOML"]),
    "Windows lines": ('model = "a"\r\nbell = true\r\n', 2, ["'bell' in [app]"]),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_would_be_right(case: str, tmp_path: Path):
    text, line, words = MISTAKES[case]
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    with pytest.raises(Failure) as raised:
        load_configuration(file)
    said = str(raised.value)
    assert f"  line {line}: " in said
    assert str(file) in said
    for word in words:
        assert word in said


def test_all_mistakes_are_named_at_once_in_the_order_of_the_file():
    _, problems = parse_configuration(b"[app]\nbell = 1\n[sampling]\ntop_k = -1\ntop = 1\n")
    assert [problem.line for problem in problems] == [2, 4, 5]


def test_what_is_right_holds_beside_what_is_wrong():
    configuration, problems = parse_configuration(b'model = "demo"\nthinking = "x"\n')
    assert len(problems) == 1
    assert (configuration.model, configuration.thinking) == ("demo", None)


def test_bytes_that_are_no_text_are_named_by_line():
    _, (problem,) = parse_configuration(b'model = "demo"\nsystem_prompt = "\xff"\n')
    assert problem.line == 2
    assert "UTF-8" in problem.text


def test_a_folder_in_the_file_s_place_is_a_failure(tmp_path: Path):
    with pytest.raises(Failure, match="cannot be read"):
        load_configuration(tmp_path)


@pytest.mark.parametrize("data", [b"", FULL.encode()])
def test_what_is_shown_is_a_file_that_says_the_same(data: bytes):
    configuration, _ = parse_configuration(data)
    assert parse_configuration(shown_as_toml(configuration).encode()) == (configuration, ())


@given(st.dictionaries(st.text(), st.text().filter(str.strip)))
def test_any_prompt_survives_being_shown(prompts: dict[str, str]):
    configuration = dataclasses.replace(DEFAULTS, prompts=prompts)
    shown = shown_as_toml(configuration).encode()
    assert parse_configuration(shown) == (configuration, ())


@given(st.binary() | st.text().map(str.encode))
def test_nothing_in_the_file_raises(data: bytes):
    _, problems = parse_configuration(data)
    assert all(problem.line >= 1 and problem.text for problem in problems)


@pytest.mark.parametrize("address", ["https://a.example:8443/mcp", "http://127.0.0.1:1/x"])
@pytest.mark.parametrize("local", ["http://[::1]:3000/mcp", "http://localhost/mcp"])
def test_addresses_of_servers(address: str, local: str):
    for url in (address, local):
        text = f'[mcp.x]\nurl = "{url}"\n'
        configuration, problems = parse_configuration(text.encode())
        assert (configuration.mcp["x"].url, problems) == (url, ())


def test_a_server_with_a_mistake_is_none_and_the_others_hold():
    text = '[mcp.a]\ncommand = ["a"]\nred = 1\n[mcp.b]\ncommand = ["b"]\n'
    configuration, problems = parse_configuration(text.encode())
    assert list(configuration.mcp) == ["b"]
    assert len(problems) == 1


def test_servers_are_chosen_by_name_and_nothing_is_chosen_by_itself(monkeypatch):
    configured = parse_configuration(FULL.encode())[0].mcp
    assert chosen_servers(configured, []) == ()
    assert [server.name for server in chosen_servers(configured, ["web", "web"])] == ["web"]
    assert [server.name for server in chosen_servers(configured, ["all"])] == ["files", "web"]
    with pytest.raises(
        Failure, match=r"no MCP server 'fils'(?s:.*)There are: files, web"
    ) as raised:
        chosen_servers(configured, ["fils"])
    assert raised.value.exit_code == 2
    with pytest.raises(Failure, match="config path"):
        chosen_servers({}, ["all"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Failure, match=r"pip install 'minicpm5-mac\[mcp\]'"):
        chosen_servers(configured, ["web"])


def test_no_secret_of_a_server_is_in_its_text():
    servers = parse_configuration(FULL.replace("example.org/mcp", "e.org/x").encode())[0].mcp
    text = repr(servers)
    assert "LEVEL" not in text
    assert "X-Team" not in text


def test_the_table_for_readers_has_every_key():
    table = markdown_table()
    for key in (*KEYS, *MCP_KEYS):
        assert f"| `{key.name}` | {key.kind.takes} |" in table
