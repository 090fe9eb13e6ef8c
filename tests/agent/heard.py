"""Listening to a turn: its events, with the user's word on what is asked."""

from __future__ import annotations

from collections.abc import Iterable

from minicpm5_mac.agent.approval import Decision
from minicpm5_mac.agent.session import Session
from minicpm5_mac.events import ApprovalWanted, Event, ToolFinished


def hear(session: Session, events: Iterable[Event], *decisions: Decision) -> list[Event]:
    """All events; what is asked is answered by `decisions` in turn."""
    waiting = list(decisions)
    heard = []
    for event in events:
        heard.append(event)
        if isinstance(event, ApprovalWanted):
            assert session.decide(event.id, waiting.pop(0))
            assert not session.decide(event.id, Decision(True)), "a second word counts for nothing"
    assert not waiting, "not everything was asked"
    return heard


def of(kind: type, heard: list[Event]) -> list:
    return [event for event in heard if isinstance(event, kind)]


def results(heard: list[Event]) -> list[tuple[str, str]]:
    return [(event.outcome, event.result) for event in of(ToolFinished, heard)]
