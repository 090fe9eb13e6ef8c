"""A store in a folder of the test's own; the sandbox and a workspace for turns with tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tried_sandbox import sandbox, sandbox_cache, workspace  # noqa: F401

from minicpm5_mac.conversations.store import ConversationStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with ConversationStore(tmp_path / "data") as opened:
        yield opened
