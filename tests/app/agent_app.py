"""The app as `minicpm5-mac agent` starts it, with the tools of one of the tiny model's stories.

`python agent_app.py WORKSPACE MODEL [CONVERSATION]` runs it in this terminal: greedy, the model in
a process of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from story_tools import StoryTools

from minicpm5_mac.agent.settings import SessionSettings
from minicpm5_mac.app.chat_app import ChatApp
from minicpm5_mac.app.options import AppOptions
from minicpm5_mac.engine.options import EngineOptions
from minicpm5_mac.engine.process import EngineProcess
from minicpm5_mac.request import Sampling
from minicpm5_mac.sandbox.policy import Policy


def main(workspace: str, model: str, conversation: str | None = None) -> None:
    settings = SessionSettings(model, sampling=Sampling(temperature=0.0), max_tokens=300)
    ChatApp(
        AppOptions(
            settings,
            lambda name: EngineProcess(EngineOptions(name)),
            given=frozenset({"model"}),
            conversation=conversation,
            theme="dark",
            toolbox=StoryTools(Policy(Path(workspace))),
        )
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
