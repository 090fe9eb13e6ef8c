"""MCP servers, whose tools the model gets beside the app's own.

`server` says what the user wrote of one; `servers` runs those of a session on a thread of its own,
`local` in the sandbox, `remote` over streamable HTTP; `definition` is what is kept of the tools
that they list, `call` a call while it runs, `answer` what it came to.

Only `connection`, `local`, `remote` and `listing` import the `mcp` SDK, and nothing imports those
before a server is started: the SDK takes longer to load than all the rest.
"""
