"""The one event stream. Engine, reply parser and agent produce these; front ends render them.

Every event is a frozen msgspec struct whose JSON carries its kind in "event", in snake case:
`Answer("Hi")` is `{"event": "answer", "text": "Hi"}`. `encode` and `decode` are that JSON, one
event a line: the wire format of the model process and the output of `chat --json`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from minicpm5_mac.messages import Role, ToolCall, TurnIds


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=_snake):
    """Anything that happens while a model is fetched, loaded, or replies."""


# The model's life ---------------------------------------------------------------------------


class DownloadProgress(Event, frozen=True):
    """Bytes fetched so far; total and seconds_left are None while they are not known."""

    name: str
    done_bytes: int
    total_bytes: int | None
    bytes_per_second: float
    seconds_left: float | None


class ModelStage(Event, frozen=True):
    """What the model process is doing before it is ready."""

    stage: Literal["starting", "resolving", "downloading", "importing", "loading", "ready"]
    detail: str = ""


class ModelReady(Event, frozen=True):
    """The model is loaded.

    weight_bytes, kv_bytes_per_token: memory; context_limit: tokens, what the model was made for
    or what fits, whichever is less; thinking: its vocabulary has the think tags;
    notes: things the user should know once (a smaller context, float32 weights on a CPU).
    """

    name: str
    path: str
    revision: str
    device: str
    quantization: str
    weight_bytes: int
    kv_bytes_per_token: int
    context_limit: int
    thinking: bool
    notes: tuple[str, ...] = ()


class ModelFailed(Event, frozen=True):
    """The model could not be had; `text` says why, `advice` what to do."""

    reason: Literal[
        "not_found", "offline", "incomplete", "corrupt", "foreign", "too_large", "download", "error"
    ]
    text: str
    advice: str = ""


class EngineStopped(Event, frozen=True):
    """The model process ended or was ended; a restart brings it back, nothing stored is lost."""

    reason: Literal["crashed", "hung", "closed"]
    detail: str = ""


class EngineSlow(Event, frozen=True):
    """The process is alive, but the model has not moved for this long."""

    seconds: float


# A reply ------------------------------------------------------------------------------------


class PromptProgress(Event, frozen=True):
    """Prefill. Tokens: `cached` were in the KV cache, `done` of `total` new ones are read."""

    cached: int
    done: int
    total: int
    tokens_per_second: float


class Reasoning(Event, frozen=True):
    """Thinking text, to append."""

    text: str


class Answer(Event, frozen=True):
    """Answer text, to append."""

    text: str


class ThinkingClosed(Event, frozen=True):
    """The thinking block is over.

    cause: the model closed it; the budget was spent; the user asked for the answer; the thinking
        went round in circles; the room that the answer needs was reached.
    tokens: thinking tokens that the model wrote in this turn. fed: ids the engine fed to close.
    """

    cause: Literal["model", "budget", "answer_now", "loop", "room"]
    tokens: int
    fed: int


class CallStarted(Event, frozen=True):
    """A tool call is being written; it is not known yet whether it will be whole."""

    name: str


class CallParsed(Event, frozen=True):
    """A tool call, whole and valid."""

    call: ToolCall


RejectReason = Literal[
    "unknown_tool",
    "missing_parameter",
    "unknown_parameter",
    "duplicate_parameter",
    "wrong_type",
    "malformed",
    "truncated",
    "inside_thinking",
]


class CallRejected(Event, frozen=True):
    """A call that must not run. parameter: the one at fault, if one is; detail: for people."""

    reason: RejectReason
    name: str
    parameter: str = ""
    detail: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Counts and rates of one reply.

    prompt_tokens = cached_tokens + prefilled_tokens. generated_tokens were written by the model,
    fed_tokens by the engine. thinking_tokens: of those generated, in this turn so far.
    Rates are tokens a second; time_to_first_token is in seconds; memory in bytes.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    fed_tokens: int = 0
    thinking_tokens: int = 0
    thinking_budget: int | None = None
    prompt_rate: float = 0.0
    decode_rate: float = 0.0
    time_to_first_token: float = 0.0
    context_used: int = 0
    context_limit: int = 0
    peak_memory: int = 0


class Progress(Event, frozen=True):
    """Where a running reply stands, a few times a second."""

    usage: Usage


class Notice(Event, frozen=True):
    """Something the user should know that is no failure. code is stable, text is for people.

    once: repeating it in the same session would only annoy.
    """

    code: str
    text: str
    once: bool = False


class HistoryShortened(Event, frozen=True):
    """Old content was left out of the prompt. The stored conversation still has all of it.

    Indices into the request's messages: those whose reasoning is no longer in the prompt, and
    those that are not in it at all.
    """

    without_reasoning: tuple[int, ...]
    left_out: tuple[int, ...]
    tokens_before: int
    tokens_after: int


class ContextFull(Event, frozen=True):
    """The conversation does not fit and was not shortened. Tokens.

    needed: of the prompt. It may be less than `limit`: a reply needs room too.
    """

    needed: int
    limit: int
    can_shorten: bool


Finish = Literal["complete", "truncated", "cancelled", "failed"]

ReplyCause = Literal["stop", "max_tokens", "context", "loop", "cancelled", "context_full", "error"]
TurnCause = Literal["steps", "time", "tokens", "repeated_call"]


class ReplyEnd(Event, frozen=True):
    """Always the last event of a reply; in a turn with tools, of the whole turn.

    cause: why it ended: the model stopped; max_tokens; the context's end (`context`); a loop in
        the answer; the user; the conversation did not fit (`context_full`); an error or the
        model process's end. A turn with tools may also end by its limits (`steps`, `time`,
        `tokens`) or because the model made the same call three times.
    finish: truncated where a block or call was still open or a limit cut the text.
    """

    finish: Finish
    cause: ReplyCause | TurnCause
    usage: Usage = Usage()
    ids: TurnIds | None = None
    detail: str = ""


# The conversation -----------------------------------------------------------------------------


class MessageSaved(Event, frozen=True):
    """A message has its place in the stored conversation: whatever happens now, it stays.

    Ids are the store's; parent is the message it answers or follows, None for a first one.
    For an assistant it comes before the first text, and the text is saved as it streams.
    siblings: the versions of a message of the user or the assistant, itself included, oldest first.
    """

    conversation: str
    message: int
    role: Role
    parent: int | None
    siblings: tuple[int, ...] = ()


# Tools ------------------------------------------------------------------------------------------

# For each call of a reply, in the order of the calls: ApprovalWanted where the user is asked, then
# ToolStarted and ToolOutput where it runs, and always ToolFinished.

ToolKind = Literal["read", "write", "command", "own", "mcp"]


class StepStarted(Event, frozen=True):
    """The model is asked for reply `number` (from 1) of at most `limit` in this turn."""

    number: int
    limit: int


class StepEnded(Event, frozen=True):
    """Reply `number` of a turn is over, and the turn goes on: its calls come next."""

    number: int
    usage: Usage = Usage()


class ApprovalWanted(Event, frozen=True):
    """A call waits for `Session.decide(id, …)`; until then the turn stands still.

    id: counts the calls of a session. shown: everything the user has to see: the whole command,
    the whole unified diff (kind `write`), or the arguments; characters that hide or reorder text
    are made visible in it. title: one line. rule: what "for this session" and "always for this
    folder" would allow, word for word; empty where only this call can be allowed.
    """

    id: int
    call: ToolCall
    kind: ToolKind
    title: str
    shown: str
    rule: str = ""


class ToolStarted(Event, frozen=True):
    """A call runs. shown, title: as in ApprovalWanted. allowed_by: what let it run."""

    id: int
    call: ToolCall
    kind: ToolKind
    title: str
    shown: str
    allowed_by: Literal["mode", "rule", "user"]


class ToolOutput(Event, frozen=True):
    """Text that a running command wrote, to append; control sequences are removed."""

    id: int
    text: str


class ToolFinished(Event, frozen=True):
    """What became of a call.

    outcome: `refused` and `denied` calls did not run: the first were no valid call, or the mode
        forbids them; the second by the user's word or rule. `repeated` ones got the earlier
        result again. `cancelled`: the user ended it; `limit`: the sandbox did.
    result: verbatim what the model is given. status: a command's exit status.
    """

    id: int
    name: str
    outcome: Literal["ok", "error", "refused", "denied", "repeated", "cancelled", "limit"]
    result: str
    seconds: float = 0.0
    status: int | None = None


class FileChange(msgspec.Struct, frozen=True):
    """One file that a turn changed. path: absolute; sizes in bytes, None where it is not there.

    executable: it can be run now, and something outside the sandbox may do so.
    kept: its old content is kept, so that it can be taken back.
    """

    path: str
    change: Literal["added", "changed", "removed", "mode"]
    old_bytes: int | None = None
    new_bytes: int | None = None
    executable: bool = False
    kept: bool = True


class FilesChanged(Event, frozen=True):
    """What a turn with tools changed on disk; `Toolbox.undo` takes `turn` back."""

    turn: str
    changes: tuple[FileChange, ...]


AnyEvent = (
    DownloadProgress
    | ModelStage
    | ModelReady
    | ModelFailed
    | EngineStopped
    | EngineSlow
    | PromptProgress
    | Reasoning
    | Answer
    | ThinkingClosed
    | CallStarted
    | CallParsed
    | CallRejected
    | Progress
    | Notice
    | HistoryShortened
    | ContextFull
    | ReplyEnd
    | MessageSaved
    | StepStarted
    | StepEnded
    | ApprovalWanted
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | FilesChanged
)

_decoder = msgspec.json.Decoder(AnyEvent)


def encode(event: Event) -> bytes:
    """One line of JSON without its newline."""
    return msgspec.json.encode(event)


def decode(line: bytes | str) -> Event:
    """The event of one line. Raises msgspec.ValidationError for anything else."""
    return _decoder.decode(line)
