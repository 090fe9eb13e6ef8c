"""The model's tools: what it reads of them, and what they do inside the sandbox.

A tool is a module with `SCHEMA`, a function description, and `run(**arguments)`, which the
sandboxed worker calls: standard library only, and of that little, since its start is paid on
every call. `built_in.py` lists them; `own_tools.py` reads those of a user's folder.
"""
