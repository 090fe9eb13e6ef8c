"""A tool's description in the form that chat templates take. Imported inside the worker too."""

from __future__ import annotations


def function_schema(
    name: str, description: str, required: tuple[str, ...] = (), **properties: dict
) -> dict:
    """OpenAI's function description; each keyword is a parameter's JSON schema."""
    parameters: dict = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = list(required)
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
