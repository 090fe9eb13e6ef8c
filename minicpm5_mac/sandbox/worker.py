"""Runs one tool function inside the sandbox: a request in on stdin, a response out on stdout.

Run as `python -I -S -B worker.py PACKAGE_PARENT`: standard library only, and of that only what a
call needs, since this start-up is paid on every call. The request is JSON:
    {"file": "/…/tool.py", "function": "run", "arguments": {…}}
and the response {"value": …}, or {"error": {"kind": "ValueError", "message": "…"}}. `file` may
import `minicpm5_mac` (its parent is on sys.path) and its own neighbours, but nothing installed.
"""

import os
import sys

# `import json` loads re and enum, and takes as long as the interpreter itself needs to start. Its
# two C halves, which hold the actual reader and writer, take nothing; where an interpreter lacks
# them, json it is.
try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:
    from json import dumps as write_json  # pyright: ignore[reportAssignmentType]
    from json import loads as read_json  # pyright: ignore[reportAssignmentType]
else:

    class _Reading:
        """What json.JSONDecoder sets on itself before it makes its scanner."""

        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float
        memo: dict = {}  # noqa: RUF012

    def read_json(text: str) -> dict:  # type: ignore[no-redef]
        return make_scanner(_Reading)(text, 0)[0]  # type: ignore[arg-type]

    def write_json(value: object) -> str:  # type: ignore[no-redef]
        def refuse(other: object) -> None:
            raise TypeError(f"a tool cannot return a {type(other).__name__}")

        encoder = make_encoder(
            {}, refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False
        )
        return "".join(encoder(value, 0))


def main() -> None:
    response = os.dup(1)
    # What a tool prints is no part of the response; it goes where warnings go.
    os.dup2(2, 1)
    request = read_json(sys.stdin.buffer.read().decode())
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    sys.path.insert(0, sys.argv[1])
    try:
        text = write_json({"value": call(**request)})
    except Exception as error:
        message = str(error) or type(error).__name__
        text = write_json({"error": {"kind": type(error).__name__, "message": message}})
    sys.stdout.flush()
    with os.fdopen(response, "wb") as pipe:
        pipe.write(text.encode())
    # Interpreter shutdown frees what the kernel is about to free anyway.
    os._exit(0)


def call(file: str, function: str, arguments: dict) -> object:
    sys.path.insert(1, os.path.dirname(file))
    # The class that loaded this script: importlib.machinery would be one more import.
    loader = type(__loader__)("minicpm5_tool", file)
    module = type(sys)("minicpm5_tool")
    module.__file__ = file
    sys.modules["minicpm5_tool"] = module
    loader.exec_module(module)
    return getattr(module, function)(**arguments)


main()
