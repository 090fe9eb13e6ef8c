"""Reads `SCHEMA` of a user's own tool, inside the sandbox: its code is never run outside."""

from __future__ import annotations


def run(file: str) -> object:
    """The module's SCHEMA. Raises what its code raises."""
    import importlib.machinery

    module = type(importlib)("own_tool")
    module.__file__ = file
    importlib.machinery.SourceFileLoader("own_tool", file).exec_module(module)
    if not callable(getattr(module, "run", None)):
        raise TypeError("it has no function run(**arguments)")
    return module.SCHEMA
