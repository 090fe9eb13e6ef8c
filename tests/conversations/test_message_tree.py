"""The tree of messages: branches, switching, and that nothing is ever lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from minicpm5_mac.conversations.records import Attachment, StoredMessage
from minicpm5_mac.conversations.store import ConversationStore
from minicpm5_mac.events import ReplyEnd, Usage
from minicpm5_mac.failure import Failure
from minicpm5_mac.messages import ToolCall, TurnIds

DONE = ReplyEnd("complete", "stop")


def texts(path: tuple[StoredMessage, ...]) -> list[str]:
    return [message.content for message in path]


def test_a_finished_reply_comes_back_whole(store: ConversationStore):
    made = store.create("x").id
    user = store.messages.add(made, None, "user", "hi", (Attachment("a.txt", "text\n"),))
    reply = store.messages.begin_reply(made, user)
    call = ToolCall("read_file", {"path": "ü", "lines": [1, 2]})
    end = ReplyEnd(
        "truncated", "max_tokens", Usage(prompt_tokens=7), TurnIds("f", True, (1, 2), (3,))
    )
    store.messages.finish_reply(reply, "answer", "thought", (call,), end)
    first, second = store.messages.path(made, reply)
    assert first.attachments == (Attachment("a.txt", "text\n"),)
    assert (second.content, second.reasoning, second.tool_calls) == ("answer", "thought", (call,))
    assert (second.finish, second.cause, second.usage) == ("truncated", "max_tokens", end.usage)
    assert (second.ids, second.state, second.parent) == (end.ids, "done", user)
    assert second.interrupted
    assert not first.interrupted


def test_an_edit_is_a_branch_and_both_ways_stay(store: ConversationStore):
    tree, made = store.messages, store.create("x").id
    one = tree.add(made, None, "user", "one")
    answer = tree.add(made, one, "assistant", "answer")
    late = tree.add(made, answer, "user", "late")
    edited = tree.add(made, None, "user", "one, edited")
    assert store.get(made).head == edited
    assert texts(tree.path(made, edited)) == ["one, edited"]
    assert texts(tree.path(made, late)) == ["one", "answer", "late"]
    assert tree.path(made, late)[0].siblings == (one, edited)
    assert tree.siblings(made, edited) == (one, edited)
    assert tree.siblings(made, answer) == (answer,)


def test_switching_leads_to_where_the_user_was_last(store: ConversationStore):
    tree, made = store.messages, store.create("x").id
    root = tree.add(made, None, "user", "root")
    first = tree.add(made, root, "assistant", "first")
    first_end = tree.add(made, first, "user", "first end")
    second = tree.add(made, root, "assistant", "second")
    second_old = tree.add(made, second, "user", "old end")
    second_new = tree.add(made, second, "user", "new end")
    assert tree.leaf(made, root) == second_new
    tree.show(made, second_old)
    tree.show(made, first_end)
    assert tree.leaf(made, root) == first_end
    assert tree.leaf(made, second) == second_old


def test_roots_of_different_conversations_are_no_siblings(store: ConversationStore):
    one, other = store.create("one").id, store.create("other").id
    first = store.messages.add(one, None, "user", "a")
    second = store.messages.add(other, None, "user", "b")
    assert store.messages.siblings(one, first) == (first,)
    assert store.messages.path(other, second)[0].siblings == (second,)


def test_a_message_of_another_conversation_is_unknown(store: ConversationStore):
    one, other = store.create("one").id, store.create("other").id
    foreign = store.messages.add(other, None, "user", "b")
    for call in (
        lambda: store.messages.path(one, foreign),
        lambda: store.messages.siblings(one, foreign),
        lambda: store.messages.leaf(one, foreign),
        lambda: store.messages.show(one, foreign),
        lambda: store.messages.add(one, foreign, "user", "x"),
        lambda: store.messages.path(one, 10**9),
    ):
        with pytest.raises(Failure, match="no message"):
            call()
    assert store.get(one).head is None


def test_opening_reads_only_the_way_to_the_head(store: ConversationStore):
    tree, made = store.messages, store.create("x").id
    root = tree.add(made, None, "user", "root")
    branches = [tree.add(made, root, "assistant", f"branch {n}") for n in range(20)]
    path = tree.path(made, branches[3])
    assert texts(path) == ["root", "branch 3"]
    assert path[1].siblings == tuple(branches)


class Branching(RuleBasedStateMachine):
    """Any sequence of sends, edits, replies, switches and reopenings, against a plain dictionary.

    model: message id → (parent, role, text). It only ever grows.
    """

    ids = Bundle("ids")

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = ConversationStore(Path(self.folder.name))
        self.conversation = self.store.create("x").id
        self.model: dict[int, tuple[int | None, str, str]] = {}
        self.head: int | None = None
        self.streaming: int | None = None

    def put(self, message: int, parent: int | None, role: str, text: str) -> int:
        assert message not in self.model
        self.model[message] = (parent, role, text)
        self.head = message
        return message

    @rule(target=ids, text=st.text())
    def send(self, text: str):
        parent = self.head
        made = self.store.messages.add(self.conversation, parent, "user", text)
        return self.put(made, parent, "user", text)

    @rule(target=ids, message=ids, text=st.text())
    def edit(self, message: int, text: str):
        parent = self.model[message][0]
        made = self.store.messages.add(self.conversation, parent, "user", text)
        return self.put(made, parent, "user", text)

    @rule(target=ids, message=ids, text=st.text(), reasoning=st.text())
    def reply(self, message: int, text: str, reasoning: str):
        made = self.store.messages.begin_reply(self.conversation, message)
        self.store.messages.save_reply(made, text[:1], reasoning[:1])
        self.store.messages.finish_reply(made, text, reasoning, (), DONE)
        return self.put(made, message, "assistant", text)

    @precondition(lambda self: self.streaming is None)
    @rule(target=ids, message=ids, text=st.text())
    def stream(self, message: int, text: str):
        self.streaming = self.store.messages.begin_reply(self.conversation, message)
        self.store.messages.save_reply(self.streaming, text, "")
        return self.put(self.streaming, message, "assistant", text)

    @rule(message=ids)
    def switch(self, message: int):
        leaf = self.store.messages.leaf(self.conversation, message)
        assert message in self.path_to(leaf)
        assert leaf not in {parent for parent, _, _ in self.model.values()}
        self.store.messages.show(self.conversation, leaf)
        self.head = leaf

    @rule(target=ids, message=consumes(ids))
    def forget(self, message: int):
        return multiple()  # so that hypothesis goes on with old and new messages alike

    @rule()
    def open_again(self):
        self.store.close()
        self.store = ConversationStore(Path(self.folder.name))
        self.streaming = None

    def path_to(self, message: int | None) -> list[int]:
        path: list[int] = []
        while message is not None:
            path.insert(0, message)
            message = self.model[message][0]
        return path

    @invariant()
    def nothing_is_lost(self):
        if not hasattr(self, "store"):
            return
        stored = self.store.messages.all(self.conversation)
        assert {m.id: (m.parent, m.role, m.content) for m in stored} == self.model
        assert self.store.get(self.conversation).head == self.head
        path = self.store.messages.path(self.conversation, self.head)
        assert [m.id for m in path] == self.path_to(self.head)
        for message in path:
            same = [m for m, (parent, _, _) in self.model.items() if parent == message.parent]
            assert message.siblings == tuple(sorted(same))
        assert {m.id for m in stored if m.state == "streaming"} == (
            {self.streaming} if self.streaming else set()
        )

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestBranching = Branching.TestCase
TestBranching.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
