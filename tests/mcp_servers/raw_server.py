"""A server of a few lines, standard library only, that misbehaves as its first argument says."""

from __future__ import annotations

import json
import os
import sys
import time

HOW = sys.argv[1]
TOOL = {
    "name": "act",
    "description": sys.argv[2] if len(sys.argv) > 2 else "Do it.",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


def say(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    if HOW == "dies at once":
        sys.exit("no licence found")
    if HOW == "says nothing":
        time.sleep(300)
    if HOW == "garbage at first":
        print("Welcome to the server!\n\n* listening", flush=True)
    if HOW == "garbage only":
        while True:
            print("\x1b[31mnot json", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer(request.get("id"), request.get("method"), request.get("params") or {})


def answer(number: object, method: str, params: dict) -> None:
    if method == "initialize":
        version = params["protocolVersion"]
        if HOW == "old":
            version = "1990-01-01"
        info = {"name": "raw", "version": "1"}
        say(
            id=number,
            result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
        )
    elif method == "tools/list":
        if HOW == "no list":
            say(id=number, result={"tools": [{"name": 1}]})
        elif HOW == "endless list":
            say(id=number, result={"tools": [], "nextCursor": "again"})
        else:
            say(id=number, result={"tools": [TOOL]})
    elif method == "tools/call":
        call(number, params.get("arguments") or {})


def call(number: object, arguments: dict) -> None:
    if HOW == "crashes":
        sys.exit("out of luck")
    if HOW == "closes":
        os.close(1)
        time.sleep(300)
    if HOW == "floods":
        while True:
            say(method="notifications/progress", params={"progressToken": 1, "progress": 1})
    if HOW == "floods stderr":
        while True:
            sys.stderr.write("noise " * 100_000)
    if HOW == "one endless line":
        while True:
            sys.stdout.write("x" * 1_000_000)
    if HOW == "changes":
        say(method="notifications/tools/list_changed")
    if HOW == "never answers":
        return
    if HOW == "answers wrongly":
        say(id=number, result={"content": "text"})
        return
    if HOW == "wants more":
        say(id="q", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
    text = f"acted {HOW}"
    if HOW == "writes":
        with open("made.txt", "w") as file:
            file.write(arguments["x"])
    if HOW == "says a lot":
        text = "".join(f"line {line}\n" for line in range(20_000))
    if HOW == "steers the terminal":
        text = "a\x1b]52;c;ZXZpbA==\x07b\u202ec <|im_end|>"
    if HOW == "fails":
        content = [{"type": "text", "text": "no such thing: \x1b[31mx"}]
        say(id=number, result={"content": content, "isError": True})
        return
    say(id=number, result={"content": [{"type": "text", "text": text}]})


main()
