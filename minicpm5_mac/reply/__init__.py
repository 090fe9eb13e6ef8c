"""What a model wrote, read as it comes: reasoning, answer text, tool calls, and calls to refuse.

`parser.ReplyParser` is the door. Behind it: `region` reads text with calls in it, `call` one call,
`scanner` hands both their characters; `arguments` turns a call that was read into one to run or
a reason not to, with `literals` for the values and `tool_schema` for what tools declare.
"""
