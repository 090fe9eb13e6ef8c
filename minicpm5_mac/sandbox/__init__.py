"""The one place where tools touch the machine: a policy, two back ends, and the canary.

`policy.Policy` says what may be reached; `linux` and `macos` only translate it; `process` starts
a command under it and ends its whole tree; `worker_call` runs one tool function inside it;
`canary` proves, through the same path, that the walls stand.
"""
