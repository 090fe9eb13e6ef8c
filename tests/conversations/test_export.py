"""Export: JSON that other programs can rely on, Markdown that people can read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from minicpm5_mac.conversations.export import export_json, export_markdown
from minicpm5_mac.conversations.fences import closed_fences, fenced
from minicpm5_mac.conversations.records import CRASHED, Attachment, with_attachments
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import Finish, ReplyEnd, Usage
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall, TurnIds


def reply(
    store: ConversationStore,
    conversation: str,
    parent: int,
    text: str,
    reasoning: str = "",
    calls: tuple[ToolCall, ...] = (),
    finish: Finish = "complete",
) -> int:
    made = store.messages.begin_reply(conversation, parent)
    end = ReplyEnd(finish, "stop", Usage(generated_tokens=3), TurnIds("f", True, (1,), (2,)))
    store.messages.finish_reply(made, text, reasoning, calls, end)
    return made


@pytest.fixture
def conversation(store: ConversationStore) -> str:
    made = store.create("A *talk*", b'{"model": "demo"}').id
    user = store.messages.add(made, None, "user", "hi", (Attachment("a.py", "x = 1\n"),))
    reply(store, made, user, "first try")
    call = ToolCall("read_file", {"path": "b"})
    answer = reply(store, made, user, "second try", "I </details> think", (call,))
    store.messages.add(made, answer, "tool", "``` result")
    return made


def test_json_has_every_branch_and_says_which_is_shown(store: ConversationStore, conversation: str):
    document = json.loads(export_json(store, conversation))
    assert document["format"] == "minicpm5-mac.conversation"
    assert document["version"] == 1
    assert document["id"] == conversation
    assert document["title"] == "A *talk*"
    assert document["settings"] == {"model": "demo"}
    user, first, second, result = document["messages"]
    assert document["head"] == result["id"]
    assert [m["shown"] for m in document["messages"]] == [True, False, True, True]
    assert [m["parent"] for m in document["messages"]] == [
        None, user["id"], user["id"], second["id"],
    ]  # fmt: skip
    assert user["attachments"] == [{"path": "a.py", "text": "x = 1\n"}]
    assert second["tool_calls"] == [{"name": "read_file", "arguments": {"path": "b"}}]
    assert second["reasoning"] == "I </details> think"
    assert (first["finish"], first["cause"]) == ("complete", "stop")
    assert first["usage"]["generated_tokens"] == 3
    assert user["usage"] is None
    assert document["created"].endswith("+00:00")


def test_json_has_exactly_the_documented_fields(store: ConversationStore, conversation: str):
    document = json.loads(export_json(store, conversation))
    assert set(document) == {
        "format", "version", "id", "title", "created", "updated", "head", "settings", "messages",
    }  # fmt: skip
    for message in document["messages"]:
        assert set(message) == {
            "id", "parent", "shown", "role", "content", "reasoning", "tool_calls", "attachments",
            "finish", "cause", "usage", "created",
        }  # fmt: skip


def test_an_empty_conversation_can_be_exported(store: ConversationStore):
    made = store.create("Nothing yet").id
    assert json.loads(export_json(store, made))["head"] is None
    assert export_markdown(store, made).startswith("# Nothing yet\n")


def test_markdown_has_the_shown_branch_in_order(store: ConversationStore, conversation: str):
    text = export_markdown(store, conversation)
    assert "first try" not in text
    parts = ["# A *talk*", "## You", "hi", "a.py", "x = 1", "## Assistant", "<details>"]
    parts += ["I &lt;/details> think", "</details>", "second try", "read_file", "## Tool result"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert text.count("</details>") == 1


def test_markdown_without_reasoning(store: ConversationStore, conversation: str):
    text = export_markdown(store, conversation, reasoning=False)
    assert "think" not in text
    assert "<details>" not in text


@pytest.mark.parametrize(
    ("finish", "words"),
    [("cancelled", "*(stopped)*"), ("truncated", "*(cut off)*"), ("failed", "*(failed)*")],
)
def test_an_unfinished_reply_is_marked(store: ConversationStore, finish: Finish, words: str):
    made = store.create("x").id
    user = store.messages.add(made, None, "user", "q")
    reply(store, made, user, "half an ans", finish=finish)
    assert export_markdown(store, made).endswith(f"half an ans\n\n{words}\n")


def test_a_crash_is_named(tmp_path):
    with ConversationStore(tmp_path) as store:
        made = store.create("x").id
        user = store.messages.add(made, None, "user", "q")
        store.messages.save_reply(store.messages.begin_reply(made, user), "half", "")
    with ConversationStore(tmp_path) as store:
        assert store.messages.path(made, store.get(made).head)[-1].cause == CRASHED
        assert "*(interrupted by a crash)*" in export_markdown(store, made)


def test_an_open_fence_does_not_swallow_what_follows(store: ConversationStore):
    made = store.create("x").id
    user = store.messages.add(made, None, "user", "q")
    cut = reply(store, made, user, "```python\nprint(", finish="truncated")
    store.messages.add(made, cut, "user", "go on")
    tokens = MarkdownIt().parse(export_markdown(store, made))
    opened = (at for at, token in enumerate(tokens) if token.type == "heading_open")
    headings = [tokens[at + 1].content for at in opened]
    assert headings == ["x", "You", "Assistant", "You"]


@pytest.mark.parametrize("export", [export_json, export_markdown])
def test_an_unknown_conversation_is_a_failure(store: ConversationStore, export):
    with pytest.raises(Failure, match="no conversation"):
        export(store, "nope")


pieces = st.lists(
    st.sampled_from(["```", "````", "~~~", "`", "\n", " ", "   ", "\t", "text", "py", "~~~~~"])
).map("".join)


@given(pieces)
def test_after_closing_the_fences_a_heading_is_a_heading(text: str):
    tokens = MarkdownIt().parse(f"{closed_fences(text)}\n\n# Next\n")
    assert tokens[-2].content == "Next"
    assert tokens[-3].type == "heading_open"


@given(pieces)
def test_a_fence_around_anything_holds_exactly_that(text: str):
    (block,) = MarkdownIt().parse(fenced(text))
    assert block.content == (f"{text}\n" if text else "\n")


def test_attached_files_follow_the_text_each_in_its_fence():
    files = (Attachment("a.md", "```\ncode\n```\n"), Attachment("b c.txt", "b"))
    assert with_attachments("Look:", files) == (
        "Look:\n\nFile a.md:\n````\n```\ncode\n```\n````\n\nFile b c.txt:\n```\nb\n```"
    )
    assert with_attachments("Look:", ()) == "Look:"
    assert with_attachments("", files[1:]) == "File b c.txt:\n```\nb\n```"
