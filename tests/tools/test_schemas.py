"""What the model reads of the tools: few words, valid, and the truth about the functions."""

from __future__ import annotations

import importlib
import inspect
import json

import pytest
from jsonschema import Draft202012Validator
from tokenizers import Tokenizer

from minicpm5_mac.events import CallParsed, CallRejected
from minicpm5_mac.messages import Message, ToolCall
from minicpm5_mac.model.prompt import load_prompt_encoder
from minicpm5_mac.reply.parser import ReplyParser
from minicpm5_mac.tools.argument_limits import LARGEST_ARGUMENT, refusal
from minicpm5_mac.tools.built_in import built_in_tools
from minicpm5_mac.tools.run_command import LONGEST_TEXT

MOST_TOKENS = 900
TOOLS = built_in_tools()
SCHEMAS = [tool.schema for tool in TOOLS]


def test_all_schemas_together_are_under_900_tokens(tiny_model):
    # A vocabulary of 2,048 cuts text into more pieces than the model's own 130,560 would.
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    text = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in SCHEMAS)
    assert len(tokenizer.encode(text, add_special_tokens=False).ids) < MOST_TOKENS


def test_a_prompt_grows_by_less_than_900_tokens_and_the_template_s_guidelines(tiny_model):
    encoder = load_prompt_encoder(tiny_model)
    hello = [Message("user", "hello")]
    without = len(encoder.whole(hello, (), thinking=False))
    alone = len(encoder.whole(hello, (SCHEMAS[0],), thinking=False))
    all_of_them = len(encoder.whole(hello, tuple(SCHEMAS), thinking=False))
    assert all_of_them - without < MOST_TOKENS
    assert alone - without > 0


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_valid_and_says_what_the_function_takes(tool):
    function = tool.schema["function"]
    Draft202012Validator.check_schema(function["parameters"])
    module = importlib.import_module(f"minicpm5_mac.tools.{tool.name}")
    assert tool.file.name == f"{tool.name}.py"
    if tool.kind == "command":
        return
    parameters = dict(inspect.signature(module.run).parameters)
    parameters.pop("place")
    assert set(parameters) == set(function["parameters"]["properties"])
    required = {name for name, p in parameters.items() if p.default is inspect.Parameter.empty}
    assert required == set(function["parameters"].get("required", ()))


def written(name: str, **values: object) -> str:
    params = "".join(f'<param name="{k}">{v}</param>' for k, v in values.items())
    return f'<function name="{name}">{params}</function>'


def read(text: str) -> CallParsed | CallRejected:
    parser = ReplyParser(SCHEMAS, thinking_open=False)
    events = [*parser.feed(text), *parser.close()]
    (found,) = [e for e in events if isinstance(e, CallParsed | CallRejected)]
    return found


@pytest.mark.parametrize(
    ("text", "reason", "field"),
    [
        (written("bash2", command="ls"), "unknown_tool", ""),
        (written("read_file"), "missing_parameter", "path"),
        (written("read_file", path="a", start="x"), "wrong_type", "start"),
        (written("read_file", path="a", start="0"), "wrong_type", "start"),
        (written("read_file", path="a", start="1.5"), "wrong_type", "start"),
        (written("read_file", path="a", lines="-3"), "wrong_type", "lines"),
        (written("run_command", command="ls", timeout="-1"), "wrong_type", "timeout"),
        (written("run_command", command="ls", timeout="1e9"), "wrong_type", "timeout"),
        (written("run_command", command="ls", timeout="601"), "wrong_type", "timeout"),
        (written("run_command", command="ls", sandbox="false"), "unknown_parameter", "sandbox"),
        (written("python", code="1", network="on"), "unknown_parameter", "network"),
        (written("write_file", path="a", content="b", place="{}"), "unknown_parameter", "place"),
        (written("read_file", path="a", place="/"), "unknown_parameter", "place"),
        ('<function name="read_file">{"path": "a"}</function>', "malformed", ""),
        ('<function name="read_file"><param name="path">a', "truncated", ""),
    ],
)
def test_arguments_that_must_not_run_are_refused_with_the_field(text, reason, field):
    found = read(text)
    assert isinstance(found, CallRejected)
    assert (found.reason, found.parameter) == (reason, field)


def test_a_number_may_be_written_as_text_in_a_call():
    found = read(written("run_command", command="ls", timeout="10"))
    assert found == CallParsed(ToolCall("run_command", {"command": "ls", "timeout": 10}))


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"path": "a\0b"}, "path"),
        ({"path": "a", "content": "x\0"}, "content"),
        ({"path": "a", "content": "x" * (2 * LARGEST_ARGUMENT)}, "content"),
        ({"list": ["fine", "not\0fine"]}, "list"),
        ({"deep": {"key\0": 1}}, "deep"),
        ({"command": "x" * (LONGEST_TEXT + 1)}, "command"),
        ({"command": "ä" * (LONGEST_TEXT // 2 + 1)}, "command"),
    ],
)
def test_no_argument_holds_a_nul_or_is_beyond_all_measure(arguments, field):
    assert refusal(ToolCall("any", arguments), program="command").startswith(f"{field} ")


@pytest.mark.parametrize(
    "arguments",
    [{}, {"path": "a"}, {"content": "x" * LARGEST_ARGUMENT}, {"command": "x" * LONGEST_TEXT},
     {"start": 3, "flag": True, "nothing": None}],
)  # fmt: skip
def test_other_arguments_pass(arguments):
    assert refusal(ToolCall("any", arguments), program="command") == ""
